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
P99_TIMES = 1.1
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


def opened_s(url: str) -> float:
    """The time until the whole page is there."""
    began_s = time.monotonic()
    with urlopen(url, timeout=stretched(60)) as page:
        page.read()
    return time.monotonic() - began_s


def p99_of(broker: Broker, url: str) -> tuple[float, float]:
    """The 99th percentile of one-record Produce requests in ms: without open pages, and with those of `tabs.py`. The
    medians of windows are compared, of which one that something else has held up is not one."""
    link = BlockingLink(bootstrap_addresses(broker.address)[0], "steady", 30_000)
    data = PartitionProduceData(index=0, records=bytes(encode_batch([Row(b"k", b"v" * 100, int(time.time() * 1_000))])))
    request = ProduceRequest(
        acks=1, timeout_ms=5_000, topic_data=[TopicProduceData(name="topic-00007", partition_data=[data])]
    )
    link.versions._chosen[PRODUCE.key] = NAMES_UNTIL
    found: dict[bool, list[float]] = {False: [], True: []}
    used_s = dict.fromkeys(found, 0.0)
    for number in range(WINDOWS):
        is_watched = bool(number % 2)
        command = [sys.executable, str(Path(__file__).with_name("tabs.py")), url]
        tabs = subprocess.Popen(command) if is_watched else None
        try:
            time.sleep(2)
            began_s = processor_s(broker.pid)
            found[is_watched].append(p99_ms(link, request))
            used_s[is_watched] += processor_s(broker.pid) - began_s
        finally:
            if tabs is not None:
                tabs.terminate()
                tabs.wait()
    link.close()
    more = (used_s[True] - used_s[False]) / (WINDOWS / 2 * WINDOW_S)
    print(f"p99 {found} ms; the open pages take {more:.1%} of the broker's core")
    return statistics.median(found[False]), statistics.median(found[True])


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
            took_s = {path: min(opened_s(url + path) for _ in range(2)) for path in (*PAGES, *LATER)}
            print({path: round(s, 3) for path, s in took_s.items()}, f"{peak_mb(pid):.0f} MB")
            assert all(took_s[path] < PAGE_S for path in PAGES)
            quiet, watched = p99_of(broker, url)
            assert peak_mb(pid) < PAGES_MB
            assert watched < quiet * P99_TIMES
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
            began_s = time.monotonic()
            with urlopen(f"{url}/topics/many/search?key=customer-7&limit=50", timeout=stretched(60)) as stream:
                assert any(line == b"event: rows\n" for line in stream)
            first_s = time.monotonic() - began_s
            began_s = time.monotonic()
            wanted = f"header=trace:%20t-{RECORDS // 3}"
            with urlopen(f"{url}/topics/many/search?{wanted}", timeout=stretched(600)) as stream:
                *_, last = (line for line in stream if line.startswith(b"data: {"))
            all_s = time.monotonic() - began_s
            assert b'"found": 1, "why": "end"' in last and f'"scanned": {RECORDS}'.encode() in last
            print(f"first hits {first_s:.2f} s, all of them {all_s:.1f} s, {peak_mb(pid):.0f} MB")
            assert first_s < 1.0
            with urlopen(f"{url}/topics/many/search?{wanted}", timeout=stretched(60)) as stream:
                assert stream.readline() == b"event: progress\n"
                before_s = processor_s(pid)
                assert wait_until(lambda: processor_s(pid) > before_s + 0.2)
            assert wait_until(lambda: rests(pid)), "a search goes on for a tab that was closed"
            assert peak_mb(pid) < SEARCH_MB
    finally:
        broker.stop()
