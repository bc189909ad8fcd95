"""Bugs of replication and of replicated coordinators that worlds of three brokers must find.

Those that only the tests of single rules find are in `tests/replication` and `tests/cluster`.
"""

from collections.abc import Callable, Mapping
from logging import CRITICAL
from typing import NamedTuple

from moldau.cluster.controlling.acting import Acting
from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode
from moldau.log import truncation
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from tests.replacing import Instead, nothing, returns
from tests.worlds.finding import found_in_worlds

GROUPS, TRANSACTIONS = "replicated-groups", "replicated-transactions"
INTERNAL = "moldau.replication.internal_topic"


def cuts_at_the_watermark(
    take_roles: Callable[..., None], replica: Replica, roles: PartitionRoles, now_ms: int
) -> None:
    take_roles(replica, roles, now_ms)
    if not replica.leadership.leads and replica.high_watermark < replica.log.log_end_offset:
        truncation.truncate_to(replica.log, replica.high_watermark, 0, now_ms)


def all_of_them(
    _: Callable[..., dict[int, BrokerImage]], __: Acting, brokers: Mapping[int, BrokerImage]
) -> dict[int, BrokerImage]:
    return dict(brokers)


class ClusterBug(NamedTuple):
    bug: Instead
    kind: str
    power_loss: bool = False


BUGS: dict[str, ClusterBug] = {
    "acks=all is answered at the append": ClusterBug(
        Instead("moldau.replication.replica:Replica.acknowledged", returns(ErrorCode.NONE)), TRANSACTIONS
    ),
    "a leader compares no epochs": ClusterBug(
        Instead("moldau.replication.for_followers:divergence", returns(None)), TRANSACTIONS
    ),
    "a follower truncates to its high watermark": ClusterBug(
        Instead("moldau.replication.replica:Replica.take_roles", cuts_at_the_watermark), TRANSACTIONS
    ),
    "a group coordinator answers before its records are committed": ClusterBug(
        Instead(f"{INTERNAL}:committed", nothing), GROUPS
    ),
    "a new controller shows brokers before it has elected leaders without them": ClusterBug(
        Instead("moldau.cluster.controlling.acting:Acting._dealt_with", all_of_them), TRANSACTIONS
    ),
    "a broker leads by what it read at its start": ClusterBug(
        Instead("moldau.cluster.state.own_leaderships:led_topics", returns([])), TRANSACTIONS, True
    ),
}


def found(name: str) -> tuple[int, str] | None:
    """As `found_in_worlds`."""
    bug, kind, power_loss = BUGS[name]
    return found_in_worlds("clusters", name, 20_000, [bug], kind, power_loss, CRITICAL)
