"""`moldau mirror` where the target is another Kafka, or is taken for one."""

import shlex
import signal
import subprocess
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from harness.listening import free_port
from harness.pages import commands
from harness.patience import stretched, wait_until
from moldau.client.producing.producer import Producer
from moldau.handlers.cluster import api_versions
from moldau.testing import Broker
from tests.cli.conftest import Moldau
from tests.cli.test_main import started

PAGE = commands("mirror-foreign.md")


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
    source, target = clusters
    there = {"old:9092": source.address, "kafka:9092": target.address}
    begin, look = ([there.get(word, word) for word in shlex.split(one.line)[1:]] for one in PAGE[:2])
    source.create_topic("orders", 1)
    with Producer(source.address) as producer:
        producer.send("orders", b"1")
    told = offline(*look).error
    assert told.endswith("has no mirror of a cluster 'old': it has no topic mm2-moldau-positions.old.internal")
    port = free_port()
    measured = "--metrics-host", "127.0.0.1", "--metrics-port", str(port)
    working = started(*begin, *measured, "--instance", "one", stderr=subprocess.PIPE)
    with working:
        try:

            def is_level() -> bool:
                said = offline(*look, "--json")
                return said.code == 0 and [(one["topic"], one["end"], one["records"]) for one in said.json] == [
                    ("orders", 1, 0)
                ]

            assert wait_until(is_level)
            shown = offline(*look).lines
            assert shown[0].split() == PAGE[1].output.splitlines()[0].split()
            assert shown[-1] == "a fail-over now would lose 0 records"
            with urlopen(f"http://127.0.0.1:{port}/metrics") as scraped:
                lines = scraped.read().decode().splitlines()
            for line in (
                "moldau_mirror_partitions 1",
                "moldau_mirror_lanes 8",
                "moldau_mirror_stopped_partitions 0",
                "moldau_mirror_refused_topics 0",
                'moldau_mirror_partition_offsets_behind{topic="orders",partition="0"} 0',
                "moldau_mirror_records_total 1",
                'moldau_mirror_partition_records_total{topic="orders",partition="0"} 1',
                "moldau_mirror_pauses_total 0",
            ):
                assert line in lines, lines
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


def test_the_status_takes_no_names_that_a_mirror_in_moldau_does_not_have(
    clusters: tuple[Broker, Broker], offline: Moldau
) -> None:
    source, target = clusters
    ends = "--from", source.address, "--to", target.address
    said = offline("mirror", "status", *ends, "--from-alias", "old")
    assert said.error.startswith("--from-alias is for a target that is not Moldau")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--from-alias", "old"], "--from-alias is for a target that is not Moldau"),
        (["--policy", "identity"], "--policy is for a target that is not Moldau"),
        (["--to-alias", "a b"], "--to-alias 'a b' cannot be part of a topic's name"),
        (["--to-alias", "source"], "--from-alias and --to-alias are the same, 'source'"),
        (["--instance", "a b"], "--instance 'a b' is not a name of letters, digits"),
        (["--metrics-host", "127.0.0.1"], "--metrics-host needs --metrics-port"),
        (["--metrics-port", "70000"], "Invalid value for '--metrics-port': 70000 is not from 0 to 65535"),
        (["--session-timeout", "0"], "--session-timeout 0 is not a number of seconds above 0"),
        (["--compression", "lzma"], "--compression 'lzma' is not one of none, gzip, snappy, lz4, zstd"),
    ],
)
def test_options_of_no_use_are_refused(
    options: list[str], sentence: str, clusters: tuple[Broker, Broker], offline: Moldau
) -> None:
    source, target = clusters
    said = offline("mirror", "start", "--from", source.address, "--to", target.address, "--topics", "a", *options)
    assert said.error.startswith(sentence)
