"""`moldau mirror` where the target is another Kafka, or is taken for one."""

import signal
import subprocess
from collections.abc import Iterator

import pytest

from harness.patience import stretched, wait_until
from moldau.client.producing.producer import Producer
from moldau.handlers.cluster import api_versions
from moldau.testing import Broker
from tests.cli.conftest import Moldau
from tests.cli.test_main import started

ALIASES = "--from-alias", "old", "--to-alias", "new"


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target


@pytest.fixture
def ends(clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The options for both clusters. As Kafka's brokers do, they tell of no API of ours."""
    monkeypatch.setattr(api_versions, "_WITH_OURS", api_versions._ALL)
    source, target = clusters
    return "--from", source.address, "--to", target.address


def test_a_worker_mirrors_by_the_rules_that_the_target_allows_and_the_status_tells_how_far(
    clusters: tuple[Broker, Broker], ends: tuple[str, ...], offline: Moldau
) -> None:
    source, _ = clusters
    source.create_topic("orders", 1)
    with Producer(source.address) as producer:
        producer.send("orders", b"1")
    told = offline("mirror", "status", *ends, "--from-alias", "old").error
    assert told.endswith("has no mirror of a cluster 'old': it has no topic mm2-moldau-positions.old.internal")
    working = started("mirror", "start", *ends, *ALIASES, "--topics", "orders", stderr=subprocess.PIPE)
    with working:
        try:

            def is_level() -> bool:
                said = offline("mirror", "status", *ends, *ALIASES, "--json")
                return said.code == 0 and [(one["topic"], one["end"], one["records"]) for one in said.json] == [
                    ("orders", 1, 0)
                ]

            assert wait_until(is_level)
            working.send_signal(signal.SIGTERM)
            assert working.wait(stretched()) == 0
            assert (
                working.stderr is not None
                and b"orders is mirrored into old.orders from now on" in working.stderr.read()
            )
        finally:
            working.kill()


@pytest.mark.parametrize("command", ["failover", "promote"])
def test_a_mirror_that_can_be_written_to_is_not_failed_over(
    command: str, clusters: tuple[Broker, Broker], ends: tuple[str, ...], offline: Moldau
) -> None:
    given = ends[2:] if command == "failover" else ends
    said = offline("mirror", command, *given, "--topics", ".*").error
    assert said.startswith(
        f"{clusters[1].address}: these brokers are not Moldau's, and topics that are mirrored there can"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--from-alias", "old"], "--from-alias is for a target that is not Moldau"),
        (["--policy", "identity"], "--policy is for a target that is not Moldau"),
        (["--to-alias", "a b"], "--to-alias 'a b' cannot be part of a topic's name"),
        (["--to-alias", "source"], "--from-alias and --to-alias are the same, 'source'"),
        (["--compression", "lzma"], "--compression 'lzma' is not one of none, gzip, snappy, lz4, zstd"),
    ],
)
def test_options_of_no_use_are_refused(
    options: list[str], sentence: str, clusters: tuple[Broker, Broker], offline: Moldau
) -> None:
    source, target = clusters
    said = offline("mirror", "start", "--from", source.address, "--to", target.address, "--topics", "a", *options)
    assert said.error.startswith(sentence)
