"""Batches that cannot be read: a search and a live tail tell their offsets and go on; an export ends there."""

import asyncio
import http.client
import json
import threading
from typing import Any
from urllib.request import urlopen

import pytest

from harness.patience import stretched
from moldau import Admin, Producer, TopicPartition
from moldau.aio import Consumer as AsyncConsumer
from moldau.client.security.brokers import Brokers
from moldau.console.asking import following
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.asking.following import TopicFollower
from moldau.console.asking.ranges import SearchRanges
from moldau.console.pages import messages
from moldau.console.search import scanning
from moldau.console.search.masking import MaskRules
from moldau.console.search.scanning import ScanStep, TopicScan
from moldau.console.search.wanted import OLDEST, SearchWanted
from moldau.console.settings import ConsoleSettings
from moldau.errors import DamagedBatch
from moldau.records.batch import batches
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served
from tests.console.test_messages import Events, events, parsed, rows

OF_A_BATCH = 10


@pytest.fixture(scope="module")
def damaged(broker: Broker) -> str:
    """Three batches in partition 0, of which the second fails its checksum, and one in partition 1."""
    broker.create_topic("damaged", 2, retention_ms=-1)
    with Producer(broker.address, linger_ms=10_000) as producer:
        for partition, name in ((0, "before"), (0, "within"), (0, "behind"), (1, "beside")):
            for number in range(OF_A_BATCH):
                producer.send("damaged", f"{name} {number}.", partition=partition, timestamp_ms=1_000 * number)
            producer.flush()
    segment = broker.data_dir / "damaged-0" / f"{0:020}.log"
    with segment.open("r+b") as file:
        (_, (at, second), _) = batches(file.read())
        assert (second.base_offset, second.last_offset) == (10, 19)
        file.seek(at + second.batch_length)
        file.write(b"\xff")
    return "damaged"


def told(stream: Events) -> list[dict[str, object]]:
    return [json.loads(data) for name, data in stream if name == "damaged"]


@pytest.mark.parametrize("query", ["start=oldest", "start=newest", "start=oldest&value=%20", "start=offset&at=14"])
def test_a_search_tells_which_offsets_are_damaged_and_goes_on_behind_them(
    console_url: str, damaged: str, query: str
) -> None:
    stream = events(console_url, f"/topics/{damaged}/search?{query}")
    found, done = rows(stream), json.loads(stream[-1][1])
    first = 14 if "offset" in query else 10
    assert "behind 9." in found and ("offset" in query or ("before 9." in found and "beside 9." in found))
    assert "within" not in found and done["why"] == "end" and done["scanned"] == done["total"]
    (one,) = told(stream)
    assert one["offsets"] == 20 - first
    assert str(one["sentence"]).startswith(f"offsets {first} to 19 of partition 0 cannot be read: the batch at offset")


@pytest.mark.parametrize("start", ["oldest", "time&at=1970-01-01"])
def test_partitions_whose_leader_does_not_answer_are_told_and_not_exported(
    console_url: str, damaged: str, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    ask = ClusterAdmin.list_offsets

    async def without_leader_of_0(*given: Any, known_only: bool = False, **named: Any) -> Any:
        assert known_only, "others would be waited for"
        return {tp: one for tp, one in (await ask(*given, known_only=True, **named)).items() if tp.partition}

    monkeypatch.setattr(ClusterAdmin, "list_offsets", without_leader_of_0)
    stream = events(console_url, f"/topics/{damaged}/search?start={start}")
    assert told(stream) == [{"sentence": "partition 0 cannot be read: no leader of it answers", "offsets": 0}]
    assert json.loads(stream[-1][1])["scanned"] == OF_A_BATCH and "beside 9." in rows(stream)
    with ScreenlessBrowser(console_url) as browser:
        for path in ("records/0/2", "export"):
            page = browser.get(f"/topics/{damaged}/{path}")
            assert page.status == 502 and "partition 0 cannot be read" in page.text
        assert browser.get(f"/topics/{damaged}/export?partition=1").status == 200


def test_a_live_tail_tells_which_offsets_are_damaged_and_goes_on_behind_them(
    console_url: str, damaged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins where the partitions begin, as if all batches came while it runs."""

    async def nothing_yet(*_: object) -> SearchRanges:
        return SearchRanges({0: (0, 0), 1: (0, 0)}, [])

    monkeypatch.setattr(messages, "ranges_of", nothing_yet)
    text, wanted = "", ["before 9.", "behind 9.", "beside 9.", "event: damaged"]
    with urlopen(f"{console_url}/topics/{damaged}/tail", timeout=stretched(30)) as stream:
        while not (all(one in text for one in wanted) and text.endswith("\n\n")):
            text += stream.readline().decode()
    (one,) = told(parsed(text))
    assert one["offsets"] == OF_A_BATCH and "within" not in text
    assert str(one["sentence"]).startswith("offsets 10 to 19 of partition 0 cannot be read: the batch at offset 10")


def test_a_live_tail_decodes_beside_the_loop(console_url: str, damaged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To decode may mean to wait for a schema registry, half a minute if it hangs."""
    threads: set[str] = set()
    look = following.readable

    def readable(*given: Any) -> Any:
        threads.add(threading.current_thread().name)
        return look(*given)

    async def nothing_yet(*_: object) -> SearchRanges:
        return SearchRanges({1: (0, 0)}, [])

    monkeypatch.setattr(following, "readable", readable)
    monkeypatch.setattr(messages, "ranges_of", nothing_yet)
    with urlopen(f"{console_url}/topics/{damaged}/tail", timeout=stretched(30)) as stream:
        while b"beside 9." not in stream.readline():
            pass
    assert {name.rpartition("_")[0] for name in threads} == {"moldau-console-tail"}


def test_a_live_tail_passes_neither_back_nor_beyond_the_end_of_a_partition(broker: Broker, damaged: str) -> None:
    """Whatever the header of a damaged batch says."""

    async def scenario() -> None:
        tp, follower = TopicPartition(damaged, 0), TopicFollower({}, damaged, {}, committed=False)
        async with AsyncConsumer(broker.address) as consumer:
            consumer.assign([tp])
            consumer.seek(tp, 0)
            while consumer.end_offset(tp) < 0:
                await consumer.poll_table()
            failure = DamagedBatch(7, 2**40, "it is damaged")
            failure.topic_partition = tp
            assert await follower._passed(consumer, failure) == (0, 10, 3 * OF_A_BATCH - 1, "it is damaged")
            failure.last = 9
            with pytest.raises(DamagedBatch):
                await follower._passed(consumer, failure)

    asyncio.run(scenario())


def test_one_damaged_record_has_a_sentence_in_place_of_its_page(console_url: str, damaged: str) -> None:
    with ScreenlessBrowser(console_url) as browser:
        page = browser.get(f"/topics/{damaged}/records/0/12")
        assert page.status == 502 and "offset 12 of partition 0 cannot be read" in page.text
        assert browser.get(f"/topics/{damaged}/records/0/20").status == 200


def test_an_export_breaks_off_at_damage_instead_of_leaving_records_out(console_url: str, damaged: str) -> None:
    with urlopen(f"{console_url}/topics/{damaged}/export?partition=0", timeout=stretched(30)) as file:
        with pytest.raises(http.client.IncompleteRead) as broken:
            file.read()
    assert broken.value.partial.count(b"\n") == OF_A_BATCH
    with urlopen(f"{console_url}/topics/{damaged}/export?start=offset&at=20&partition=0") as file:
        assert len(file.read().splitlines()) == OF_A_BATCH


def test_a_broker_that_cannot_read_on_is_asked_a_few_times(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the length of a batch is damaged: nobody knows where the next one begins."""
    monkeypatch.setattr(scanning, "TIMEOUT_MS", 100)
    broker.create_topic("torn", 1)
    with Producer(broker.address) as producer:
        for number in range(30):
            producer.send("torn", b"%d" % number).result()
    segment = broker.data_dir / "torn-0" / f"{0:020}.log"
    with segment.open("r+b") as file:
        at, _ = [*batches(file.read())][15]
        file.seek(at + 8)
        file.write(b"\x7f")
    for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0)):
        stream = events(url, "/topics/torn/search?start=oldest")
        assert rows(stream).count("<tr>") == 15 and told(stream)[0]["offsets"] == 15


def scan_of(broker: Broker, topic: str) -> TopicScan:
    """Of the first 1,000 offsets of its partition, from the beginning."""
    wanted, mask = SearchWanted(start=OLDEST, key="k"), MaskRules([]).of(topic)
    return TopicScan(Brokers(broker.address, {}), topic, {0: (0, 1_000)}, wanted, mask)


def steps(scan: TopicScan) -> list[ScanStep]:
    try:
        return [*iter(scan.step, None)]
    finally:
        scan.close()


def test_a_batch_of_many_records_is_searched_part_by_part(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "ROWS_AT_ONCE", 100)
    broker.create_topic("tiny", 1)
    with Producer(broker.address, linger_ms=10_000, compression_type="zstd") as producer:
        for _ in range(1_000):
            producer.send("tiny", b"", b"k")
    found = [step for step in steps(scan_of(broker, "tiny")) if step.hits]
    assert sum(len(step.hits) for step in found) == 1_000 and max(len(step.hits) for step in found) <= 100
    assert [step.scanned for step in found] == sorted({step.scanned for step in found})


def test_records_that_are_deleted_while_a_search_goes_on_do_not_end_it(broker: Broker) -> None:
    broker.create_topic("shrinking", 1)
    with Producer(broker.address) as producer:
        for _ in range(1_000):
            producer.send("shrinking", b"", b"k")
    scan = scan_of(broker, "shrinking")
    with Admin(broker.address) as admin:
        admin.delete_records({TopicPartition("shrinking", 0): 300})
    found = steps(scan)
    assert [one.offset for step in found for one in step.hits] == [*range(300, 1_000)]
    assert found[-1].scanned == 1_000
