"""`moldau mirror`: a worker as a process, and what the command says of it."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from harness.listening import free_port
from harness.patience import stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.mirror.ends import SETTING, source_of
from moldau.mirror.planning import FAILING_OVER
from moldau.testing import Broker
from tests.cli.conftest import Moldau
from tests.cli.test_main import started

NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target


def test_a_worker_mirrors_until_it_is_stopped_and_the_status_tells_how_far(
    clusters: tuple[Broker, Broker], offline: Moldau
) -> None:
    source, target = clusters
    ends = "--from", source.address, "--to", target.address
    source.create_topic("orders", 1)

    def produce(*values: bytes) -> None:
        with Producer(source.address, acks="all") as producer:
            for value in values:
                producer.send("orders", value)

    produce(b"1", b"2", b"3")
    port = free_port()
    measured = "--metrics-host", "127.0.0.1", "--metrics-port", str(port)
    working = started("mirror", "start", *ends, "--topics", "ord.*", *measured, stderr=subprocess.PIPE)
    with working:
        try:
            assert wait_until(
                lambda: [one["records"] for one in offline("mirror", "status", *ends, "--json").json] == [0]
            )
            with urlopen(f"http://127.0.0.1:{port}/metrics") as scraped:
                text = scraped.read().decode()
            assert 'moldau_mirror_partition_offsets_behind{topic="orders",partition="0"} 0' in text
            assert "moldau_mirror_offsets_total 3" in text
            assert 'moldau_mirror_partition_records_total{topic="orders",partition="0"} 3' in text
            assert 'moldau_mirror_partition_latency_max_seconds{topic="orders",partition="0"} ' in text
            working.send_signal(signal.SIGTERM)
            assert working.wait(stretched()) == 0
            assert working.stderr is not None and b"orders is mirrored from now on" in working.stderr.read()
        finally:
            working.kill()
    produce(b"4", b"5")
    shown = offline("mirror", "status", *ends).lines
    assert shown[0].split() == ["TOPIC", "PARTITION", "SOURCE", "END", "STABLE", "END", "END", "BEHIND", "SECONDS"]
    *row, seconds = shown[1].split()
    assert row == ["orders", "0", "5", "5", "3", "2"] and float(seconds) >= 0
    assert shown[2:] == ["a fail-over now would lose 2 records"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--topics", "a("], "--topics 'a(' is not a regular expression"),
        (["--topics", "a", "--from-config", "/nowhere.properties"], "cannot read /nowhere.properties"),
    ],
)
def test_a_command_in_vain_says_why(options: list[str], sentence: str, offline: Moldau) -> None:
    assert offline("mirror", "start", "--from", NOWHERE, "--to", NOWHERE, *options).error.startswith(sentence)


def test_a_cluster_that_does_not_answer_is_waited_for(
    clusters: tuple[Broker, Broker], offline: Moldau, tmp_path: Path
) -> None:
    source, target = clusters
    source.create_topic("waiting", 1)
    target.kill()
    ends = "--from", source.address, "--to", target.address
    working = started("mirror", "start", *ends, "--topics", "waiting", stderr=subprocess.PIPE)
    with working:
        try:
            assert working.stderr is not None and b"cannot connect" in working.stderr.readline()
            target.start()
            assert any(b"waiting is mirrored from now on" in line for line in working.stderr)
        finally:
            working.kill()
    brief = tmp_path / "brief.properties"
    brief.write_text("default.api.timeout.ms=100")
    nowhere = "--from", NOWHERE, "--to", NOWHERE, "--topics", "a", "--from-config", brief
    assert offline("mirror", "start", *nowhere).error.startswith(f"cannot connect to {NOWHERE}: Connection refused")


def test_a_cluster_cannot_mirror_itself(clusters: tuple[Broker, Broker], offline: Moldau) -> None:
    one = clusters[0].address
    said = offline("mirror", "start", "--from", one, "--to", one, "--topics", "a").error
    assert said.startswith("--from and --to are the same cluster")


def test_a_promotion_fails_for_a_topic_whose_fail_over_was_interrupted(
    clusters: tuple[Broker, Broker], offline: Moldau
) -> None:
    source, target = clusters
    ends = "--from", source.address, "--to", target.address
    source.create_topic("whole", 1)
    with Admin(source.address) as admin:
        of_whole = source_of(
            admin.describe_cluster().cluster_id or "", admin.describe_topics(["whole"])["whole"].topic_id
        )
    with Admin(target.address) as admin:
        for name, mirror_source in (("whole", of_whole), ("half", FAILING_OVER + 22 * "x")):
            admin.create_topic(name, partitions=1, configs={SETTING: mirror_source})
    shown = offline("mirror", "status", *ends, "--json")
    assert shown.err.startswith("half: a fail-over was interrupted; it takes no records until")
    assert "half" not in [one["topic"] for one in shown.json]
    done = offline("mirror", "promote", *ends, "--topics", "half|whole", "--groups", "")
    assert (done.code, done.lines) == (1, ["whole-0 is writable from offset 1"])
    assert done.err.startswith("error: half is not failed over") and "an earlier fail-over of it was" in done.err
