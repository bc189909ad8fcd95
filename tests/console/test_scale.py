"""A console of a large cluster: its first pages, a search of many records, its memory (`make long`)."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched
from moldau import Admin, Producer, TopicPartition

TOPICS, PARTITIONS, GROUPS = 10_000, 4, 2_500
TOPICS_AT_ONCE, PARTITIONS_OF_A_GROUP = 500, 16
RECORDS = 10_000_000
PAGE_S, PAGES_MB, SEARCH_MB = 0.5, 150, 200
PAGES = ("/topics", "/", "/groups", "/brokers", "/topics?q=777", "/topics/topic-00042", "/groups/group-0042")
LATER = ("/health", "/topic-rows", "/group-rows", "/topic-rows?from=5000")


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


def opened_s(url: str) -> float:
    """The time until the whole page is there."""
    began_s = time.monotonic()
    with urlopen(url, timeout=stretched(60)) as page:
        page.read()
    return time.monotonic() - began_s


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
            for path in PAGES:
                assert min(opened_s(url + path) for _ in range(2)) < PAGE_S, path
            for path in LATER:
                opened_s(url + path)
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
            began_s = time.monotonic()
            with urlopen(f"{url}/topics/many/search?key=customer-7&limit=50", timeout=stretched(60)) as stream:
                assert any(line == b"event: rows\n" for line in stream)
            assert time.monotonic() - began_s < 1.0
            wanted = f"header=trace:%20t-{RECORDS // 3}"
            with urlopen(f"{url}/topics/many/search?{wanted}", timeout=stretched(600)) as stream:
                *_, last = (line for line in stream if line.startswith(b"data: {"))
            assert b'"found": 1, "why": "end"' in last and f'"scanned": {RECORDS}'.encode() in last
            assert peak_mb(pid) < SEARCH_MB
    finally:
        broker.stop()
