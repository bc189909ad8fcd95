"""A console of a large cluster: its first pages, what its open pages cost the broker, a search of many records, its
memory. `-s` prints the figures (`make long`)."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched, wait_until
from moldau import Admin, Producer, TopicPartition
from moldau.client.blocking import BlockingLink
from moldau.peers.address import bootstrap_addresses
from moldau.protocol.apis import PRODUCE
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import Row, encode_batch

TOPICS, PARTITIONS, GROUPS = (int(one) for one in os.environ.get("MOLDAU_SCALE", "10000 4 2500").split())
TOPICS_AT_ONCE, PARTITIONS_OF_A_GROUP = 500, 16
RECORDS = int(os.environ.get("MOLDAU_SCALE_RECORDS", "10000000"))
PAGE_S, PAGES_MB, SEARCH_MB = 0.5, 150, 200
PAGES = ("/topics", "/", "/groups", "/brokers", "/topics?q=777", "/topics/topic-00042", "/groups/group-0042")
LATER = ("/health", "/topic-rows", "/group-rows", "/topic-rows?from=5000")
WINDOWS, WINDOW_S, EACH_S = 8, 15.0, 0.005
"""Windows with open pages and without them take turns, so that a slow minute of the machine is in both."""
P99_TIMES, SHARE = 1.1, 0.01
"""Less than one request in a hundred meets one of a page, so the 99th percentile is that of the others."""
NAMES_UNTIL = 12
"""The last version of Produce that names topics."""
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def console_of(address: str) -> "Iterator[tuple[str, int]]":
    """The console as a process: its address and its id."""
    command = [sys.executable, "-m", "moldau", "console", "-b", address, "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1], process.pid
        finally:
            process.terminate()


def peak_mb(pid: int) -> float:
    (line,) = (one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def processor_s(pid: int) -> float:
    """The processor time of all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rests(pid: int) -> bool:
    """Whether a process does nothing for half a second."""
    before_s = processor_s(pid)
    time.sleep(0.5)
    return processor_s(pid) - before_s < 0.05


def opened(url: str, *pids: int) -> tuple[float, float]:
    """The seconds until the whole page is there, and those of these processes' processor time; the lesser of two."""
    found = []
    for _ in range(2):
        began_s, used_s = time.monotonic(), sum(map(processor_s, pids))
        with urlopen(url, timeout=stretched(60)) as page:
            page.read()
        found.append((time.monotonic() - began_s, sum(map(processor_s, pids)) - used_s))
    return min(one for one, _ in found), min(one for _, one in found)


class OpenPagesCost(NamedTuple):
    """What open pages cost a broker: `share` of one core, and the 99th percentiles of one-record Produce requests, as
    medians of windows without open pages and with them. `is_noisy`: windows without them differ by more than the
    pages may cost."""

    share: float
    quiet_ms: float
    watched_ms: float
    is_noisy: bool


def cost_of_open_pages(broker: Broker, url: str) -> OpenPagesCost:
    with open_pages(url, is_watched=True):
        time.sleep(WINDOW_S)  # what is asked first and then kept is not what open pages cost
    link = BlockingLink(bootstrap_addresses(broker.address)[0], "steady", 30_000)
    data = PartitionProduceData(index=0, records=bytes(encode_batch([Row(b"k", b"v" * 100, int(time.time() * 1_000))])))
    topic = TopicProduceData(name="topic-00007", partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=5_000, topic_data=[topic])
    link.versions._chosen[PRODUCE.key] = NAMES_UNTIL
    found: dict[bool, list[float]] = {False: [], True: []}
    used_s: dict[bool, list[float]] = {False: [], True: []}
    for number in range(WINDOWS):
        is_watched = bool(number % 2)
        before_s = processor_s(broker.pid)
        with open_pages(url, is_watched=is_watched) as tabs:
            found[is_watched].append(p99_ms(link, request))
        used_s[is_watched].append(processor_s(broker.pid) - before_s)
    link.close()
    print({"quiet": found[False], "watched": found[True]}, used_s, f"{sum(tabs):.0%} of the requests that were due")
    share = (statistics.median(used_s[True]) - statistics.median(used_s[False])) / (sum(tabs) * WINDOW_S)
    quiet, watched = statistics.median(found[False]), statistics.median(found[True])
    return OpenPagesCost(share, quiet, watched, max(found[False]) > min(found[False]) * P99_TIMES)


@contextmanager
def open_pages(url: str, *, is_watched: bool, seconds: float = WINDOW_S) -> Iterator[list[float]]:
    """Pages that are open for a window; the list has at the end which share of their requests they could make."""
    made: list[float] = []
    if not is_watched:
        yield made
        return
    command = [sys.executable, str(Path(__file__).with_name("tabs.py")), url, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tabs:
        yield made
        said, _ = tabs.communicate()
        made.append(float(said))


def p99_ms(link: BlockingLink, request: ProduceRequest) -> float:
    took, ends_s = [], time.monotonic() + WINDOW_S
    while time.monotonic() < ends_s:
        began_s = time.perf_counter()
        link.call(PRODUCE, request)
        took.append(time.perf_counter() - began_s)
        time.sleep(EACH_S)
    return statistics.quantiles(took, n=100)[98] * 1_000


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_pages_of_a_large_cluster_come_at_once_in_little_memory(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"num.partitions": str(PARTITIONS), "log.cleaner.enable": "false"})
    broker.start()
    try:
        with Admin(broker.address, default_api_timeout_ms=600_000, request_timeout_ms=600_000) as admin:
            for first in range(0, TOPICS, TOPICS_AT_ONCE):
                admin.create_topics([f"topic-{n:05d}" for n in range(first, first + TOPICS_AT_ONCE)])
            for group in range(GROUPS):
                names = [f"topic-{(group * PARTITIONS + one) % TOPICS:05d}" for one in range(PARTITIONS)]
                places = [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]
                admin.alter_group_offsets(f"group-{group:04d}", dict.fromkeys(places[:PARTITIONS_OF_A_GROUP], 0))
        with console_of(broker.address) as (url, pid):
            took = {path: opened(url + path, pid, broker.pid) for path in (*PAGES, *LATER)}
            print({path: (round(s, 3), round(used_s, 3)) for path, (s, used_s) in took.items()})
            assert all(took[path][0] < stretched(PAGE_S) and took[path][1] < PAGE_S for path in PAGES)
            cost = cost_of_open_pages(broker, url)
            print(cost, f"{peak_mb(pid):.0f} MB")
            assert cost.share < SHARE
            assert cost.is_noisy or cost.watched_ms < cost.quiet_ms * P99_TIMES
            assert peak_mb(pid) < PAGES_MB
    finally:
        broker.stop()


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_search_of_ten_million_records_takes_little_memory(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"num.partitions": str(PARTITIONS)})
    broker.start()
    try:
        with Producer(broker.address, linger_ms=50, compression_type="zstd", batch_size=256 << 10) as producer:
            for number in range(RECORDS):
                value = f'{{"order": {number}, "river": "Vltava", "amount": {number % 97}.5}}'
                producer.send("many", value, b"customer-%d" % (number % 500), headers=[("trace", b"t-%d" % number)])
        with console_of(broker.address) as (url, pid):
            began_s, used_s = time.monotonic(), processor_s(pid) + processor_s(broker.pid)
            with urlopen(f"{url}/topics/many/search?key=customer-7&limit=50", timeout=stretched(60)) as stream:
                assert any(line == b"event: rows\n" for line in stream)
            first_s = time.monotonic() - began_s
            used_s = processor_s(pid) + processor_s(broker.pid) - used_s
            began_s = time.monotonic()
            wanted = f"header=trace:%20t-{RECORDS // 3}"
            with urlopen(f"{url}/topics/many/search?{wanted}", timeout=stretched(600)) as stream:
                *_, last = (line for line in stream if line.startswith(b"data: {"))
            all_s = time.monotonic() - began_s
            assert b'"found": 1, "why": "end"' in last and f'"scanned": {RECORDS}'.encode() in last
            print(f"first hits {first_s:.2f} s ({used_s:.2f} s used), all {all_s:.1f} s, {peak_mb(pid):.0f} MB")
            assert first_s < stretched(1.0) and used_s < 1.0
            with urlopen(f"{url}/topics/many/search?{wanted}", timeout=stretched(60)) as stream:
                assert stream.readline() == b"event: progress\n"
                before_s = processor_s(pid)
                assert wait_until(lambda: processor_s(pid) > before_s + 0.2)
            assert wait_until(lambda: rests(pid)), "a search goes on for a tab that was closed"
            assert peak_mb(pid) < SEARCH_MB
    finally:
        broker.stop()
