"""Which quota holds for a client: the most specific of eight levels."""

import pytest

from moldau.cluster.state.quotas import CONNECTION, DEFAULT, FETCH, PRODUCE, QuotaOwner
from moldau.security.quotas.entities import Limit, QuotaTable

LEVELS = [
    (QuotaOwner("ann", "app"), ("ann", "app")),
    (QuotaOwner("ann", DEFAULT), ("ann", "app")),
    (QuotaOwner("ann"), ("ann", None)),
    (QuotaOwner(DEFAULT, "app"), ("ann", "app")),
    (QuotaOwner(DEFAULT, DEFAULT), ("ann", "app")),
    (QuotaOwner(DEFAULT), ("ann", None)),
    (QuotaOwner(client_id="app"), (None, "app")),
    (QuotaOwner(client_id=DEFAULT), (None, "app")),
]
"""Each with the user and the client id whose use it counts together."""


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_the_most_specific_quota_holds(level: int) -> None:
    table = QuotaTable({entity: {PRODUCE: 100.0 + at} for at, (entity, _) in enumerate(LEVELS) if at >= level})
    assert table.limit(PRODUCE, "ann", "app") == Limit(100.0 + level, *LEVELS[level][1])
    assert table.limit(FETCH, "ann", "app") is None


def test_quotas_of_others_do_not_hold() -> None:
    others = [QuotaOwner("bob", "app"), QuotaOwner("bob"), QuotaOwner("ann", "job"), QuotaOwner(client_id="job")]
    table = QuotaTable({entity: {PRODUCE: 1.0} for entity in others})
    assert table.limit(PRODUCE, "ann", "app") is None
    assert table.limit(PRODUCE, "ann", "job") == Limit(1.0, "ann", "job")
    assert table.limit(PRODUCE, "eve", "job") == Limit(1.0, None, "job")


def test_each_kind_of_quota_has_its_own_level() -> None:
    table = QuotaTable({QuotaOwner("ann", "app"): {PRODUCE: 1.0}, QuotaOwner(DEFAULT): {FETCH: 2.0}})
    assert table.limit(PRODUCE, "ann", "app") == Limit(1.0, "ann", "app")
    assert table.limit(FETCH, "ann", "app") == Limit(2.0, "ann", None)


def test_addresses_have_rates_however_they_are_written() -> None:
    table = QuotaTable({QuotaOwner(ip="0:0::1"): {CONNECTION: 5.0}, QuotaOwner(ip="10.0.0.1"): {CONNECTION: 0.0}})
    assert table.limits_addresses
    assert [table.connection_rate(one) for one in ("::1", "10.0.0.1", "10.0.0.2")] == [5.0, 0.0, None]
    everybody = QuotaTable({QuotaOwner(ip=DEFAULT): {CONNECTION: 7.0}})
    assert everybody.connection_rate("10.0.0.2") == 7.0
    assert not QuotaTable({}).limits_addresses
