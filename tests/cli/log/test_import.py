"""Old and new log files imported into a running broker, and read back."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched
from moldau.cli.log import importing as log_import
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.offsets import EARLIEST
from tests.cli.conftest import Moldau
from tests.records import making
from tests.records import old_messages as old
from tests.records.old_messages import message, set_v0, set_v1

NOTHING = {"control_batches": 0, "aborted_records": 0, "undecided_records": 0}


@pytest.fixture
def make_topic(broker: Broker, fresh: Callable[[], str]) -> Callable[..., str]:
    def make(partitions: int = 1, **configs: str) -> str:
        topic = fresh()
        with Admin(broker.address) as admin:
            settings = {"retention.ms": "-1", **{name.replace("_", "."): value for name, value in configs.items()}}
            admin.create_topic(topic, partitions=partitions, configs=settings)
        return topic

    return make


def segment(folder: Path, base_offset: int, *parts: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020}.log"
    path.write_bytes(b"".join(parts))
    return path


def numbered(first: int, count: int) -> bytes:
    """Messages v0 that say their offset."""
    return b"".join(message(i, b"k%d" % i, b"v%d" % i) for i in range(first, first + count))


def batch(offset: int, *values: bytes, producer_id: int = -1, attributes: int = 0) -> bytes:
    records = [making.record(i, key=None, value=value) for i, value in enumerate(values)]
    return bytes(making.batch(*records, base_offset=offset, producer_id=producer_id, attributes=attributes))


def marker(offset: int, producer_id: int, commit: bool) -> bytes:
    record = making.record(key=bytes([0, 0, 0, commit]), value=bytes(6))
    return bytes(making.batch(record, base_offset=offset, producer_id=producer_id, attributes=0x30))


def read(broker: Broker, topic: str) -> list[Record]:
    """Everything in the topic, partition by partition."""
    found = []
    with Admin(broker.address) as admin, Consumer(broker.address) as consumer:
        for tp, (_, end) in admin.watermarks(topic).items():
            consumer.assign([tp])
            consumer.seek_to({tp: EARLIEST})
            while consumer.position(tp) < end:
                found += consumer.poll(200)
    return found


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in read(broker, topic)]


def test_every_format_arrives_with_keys_values_headers_and_timestamps(
    moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    contents = [(b"a", b"1"), (None, b"2"), (b"c", None)]
    first = [set_v0([0, 1, 5], contents, codec) for codec in (0, old.SNAPPY)]
    stamps = [1_000, 999, 1_001]
    second = [set_v1([20, 21, 30], contents, old.LZ4, stamps), set_v1([31, 32, 33], contents, 0, stamps, append_time=7)]
    header = making.record(key=b"h", value=b"v", headers=[(b"name", b"\xff"), ("ř".encode(), None)])
    segment(tmp_path / "t-0", 0, *(part for part, _ in first))
    segment(tmp_path / "t-0", 20, *(part for part, _ in second), bytes(making.batch(header, base_offset=40, codec=4)))
    (tmp_path / "t-0" / "00000000000000000000.index").write_bytes(b"no log")
    (tmp_path / "t-0" / "00000000000000000099.log.deleted").write_bytes(b"no log")
    assert moldau("log", "import", str(tmp_path / "t-0"), "--topic", topic).out == f"imported 13 records into {topic}\n"
    found = read(broker, topic)
    rows = [row for _, part in first + second for row in part]
    assert [(r.timestamp_ms, r.key, r.value) for r in found[:12]] == [(r.timestamp_ms, r.key, r.value) for r in rows]
    assert (found[12].key, found[12].value, found[12].timestamp_ms) == (b"h", b"v", making.NOW)
    assert found[12].headers == [("name", b"\xff"), ("ř", None)]


def test_the_partition_is_the_keys_the_one_named_or_the_folders(
    moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    folders = [tmp_path / "events-0", tmp_path / "events-2"]
    for number, folder in enumerate(folders):
        segment(folder, 0, numbered(10 * number, 10))
    names = [str(folder) for folder in folders]
    by_key, named, kept = (make_topic(3) for _ in range(3))
    assert moldau("log", "import", *names, "--topic", by_key).code == 0
    spread = [record.partition for record in read(broker, by_key)]
    assert (len(spread), {*spread}) == (20, {0, 1, 2})
    assert moldau("log", "import", *names, "--topic", named, "--partition", "1").code == 0
    assert [record.partition for record in read(broker, named)] == [1] * 20
    assert moldau("log", "import", *names, "--topic", kept, "--keep-partitions", "--compression", "zstd").code == 0
    assert [(r.partition, r.value) for r in read(broker, kept)] == [
        (2 * (i // 10), b"v%d" % i) for i in range(20)
    ]  # fmt: skip


def test_files_are_read_in_order_of_names_whatever_their_arguments_order(
    moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    files = [segment(tmp_path, base, numbered(base, 2)) for base in (0, 2, 10)]
    done = moldau("log", "import", *map(str, reversed(files)), str(files[0]), "--topic", topic, "--json")
    assert done.json == {"topic": topic, "imported": 6, "skipped": NOTHING, "stopped": None, "go_on": None}
    assert values(broker, topic) == [b"v0", b"v1", b"v2", b"v3", b"v10", b"v11"]


def test_what_transactions_aborted_left_open_or_marked_is_left_out(
    moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    part = [
        batch(0, b"plain"),
        batch(1, b"aborted 1", b"aborted 2", producer_id=7, attributes=0x10),
        batch(3, b"committed", producer_id=8, attributes=0x10),
        marker(4, 7, commit=False),
        batch(5, b"committed later", producer_id=7, attributes=0x10),
        batch(6, b"plain of a producer in a transaction", producer_id=8),
    ]
    rest = [
        marker(7, 8, commit=True),
        batch(8, b"aborted 3", producer_id=8, attributes=0x10),
        marker(9, 7, commit=True),
        marker(10, 8, commit=False),
        batch(11, b"open", producer_id=7, attributes=0x10),
        batch(12, b"last"),
    ]
    segment(tmp_path, 0, *part)
    segment(tmp_path, 7, *rest)
    done = moldau("log", "import", str(tmp_path), "--topic", topic, "--json")
    assert done.json["imported"] == 5
    assert done.json["skipped"] == {"control_batches": 4, "aborted_records": 3, "undecided_records": 1}
    assert "left out 3 records of aborted transactions\nleft out 1 record of transactions whose end" in done.err
    expected = [b"plain", b"committed", b"committed later", b"plain of a producer in a transaction", b"last"]
    assert values(broker, topic) == expected


def test_a_damaged_batch_is_not_taken_for_an_aborted_one(
    moldau: Moldau, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    bad = bytearray(batch(1, b"whose?", producer_id=7, attributes=0x10))
    bad[-1] ^= 1
    parts = batch(0, b"aborted", producer_id=7, attributes=0x10), bytes(bad), marker(2, 7, commit=False)
    path = segment(tmp_path, 0, *parts)
    said = moldau("log", "import", str(path), "--topic", make_topic()).err
    assert "the checksum of the entry at offset 1 is wrong" in said


def test_max_messages_ends_it_and_from_offset_goes_on(
    moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    part, _ = set_v1([0, 1, 4, 6], [(None, b"%d" % i) for i in range(4)], old.GZIP, [1] * 4)
    one, other = segment(tmp_path / "a b", 0, part), segment(tmp_path / "c", 0, numbered(0, 3))
    whole = ("log", "import", str(one), str(other), "--topic", topic)
    first = moldau(*whole, "-n", "2", "--json")
    assert (first.code, first.json["imported"]) == (0, 2)
    assert first.json["go_on"] == {"paths": [str(one), str(other)], "from_offset": 4}
    assert f"more records follow: continue with '{one}' {other} --from-offset 4" in first.err
    second = moldau(*whole, "--from-offset", "4", "-n", "3", "--json")
    assert second.json["go_on"] == {"paths": [str(other)], "from_offset": 1}
    third = moldau("log", "import", str(other), "--topic", topic, "--from-offset", "1")
    assert (third.out, third.err) == (f"imported 2 records into {topic}\n", "")
    assert values(broker, topic) == [b"0", b"1", b"2", b"3", b"v0", b"v1", b"v2"]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_entry_stops_it_and_one_can_go_on_behind_it(
    compressed: bool, moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    bad = message(3, b"k", b"v", crc=7)
    if compressed:
        bad = old.wrapper(3, message(2, crc=1), message(3))
    path = segment(tmp_path, 0, numbered(0, 2), bad, numbered(4, 2))
    stopped = moldau("log", "import", str(path), "--topic", topic)
    assert stopped.error.startswith(f"{path} cannot be read at position {len(numbered(0, 2))}: the ")
    assert f"2 records imported into {topic}, go on behind that with {path} --from-offset 4" in stopped.error
    assert moldau("log", "import", str(path), "--topic", topic, "--from-offset", "4").code == 0
    assert values(broker, topic) == [b"v0", b"v1", b"v4", b"v5"]


def test_after_a_cut_off_file_one_can_go_on_with_the_next(
    moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    segment(tmp_path, 0, numbered(0, 3)[:-1])
    segment(tmp_path, 3, numbered(3, 2)[:-1])
    said = moldau("log", "import", str(tmp_path), "--topic", topic).error
    assert "cut off" in said and said.endswith(f"go on behind that with {tmp_path} --from-offset 3")
    said = moldau("log", "import", str(tmp_path), "--topic", topic, "--from-offset", "3").error
    assert said.endswith(f"cut off after 29; 1 record imported into {topic}")
    assert values(broker, topic) == [b"v0", b"v1", b"v3"]


def test_zeros_at_the_end_of_a_preallocated_file_are_no_damage(
    moldau: Moldau, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    path = segment(tmp_path, 0, numbered(0, 1), bytes(1000))
    done = moldau("log", "import", str(path), "--topic", (topic := make_topic()))
    assert (done.code, done.out) == (0, f"imported 1 record into {topic}\n")
    assert f"{path} holds only zeros from position" in done.err


def test_a_record_that_the_topic_refuses_stops_it(
    moldau: Moldau, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(cleanup_policy="compact")
    path = segment(tmp_path, 0, message(0, b"k", b"v"), message(1, None, b"no key"), message(2, b"k", b"v"))
    stopped = moldau("log", "import", str(path), "--topic", topic, "--json")
    assert stopped.code == 1
    assert "was not taken" in stopped.json["stopped"] and "without key" in stopped.err
    assert stopped.json["go_on"] == {"paths": [str(path)], "from_offset": 0}


def test_records_older_than_the_topic_keeps_are_warned_of_once(
    moldau: Moldau, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    part, _ = set_v1([0, 1], [(None, b"1"), (None, b"2")], 0, [1_000, 2_000])
    path = segment(tmp_path, 0, part)
    old_ones = moldau("log", "import", str(path), "--topic", (topic := make_topic(retention_ms="604800000")))
    assert old_ones.err == f"topic {topic} deletes records as old as these: `retention.ms=-1` would keep them\n"
    assert moldau("log", "import", str(path), "--topic", make_topic()).err == ""


def test_arguments_that_make_no_sense_are_refused(
    moldau: Moldau, make_topic: Callable[..., str], tmp_path: Path, broker: Broker
) -> None:
    topic = make_topic()
    folder = tmp_path / "named"
    path = str(segment(folder, 0, numbered(0, 1)))
    assert "unknown topic" in moldau("log", "import", path, "--topic", "nothing-here").error
    assert "no partition 3, only 0 to 0" in moldau("log", "import", path, "-t", topic, "--partition", "3").error
    assert "not both" in moldau("log", "import", path, "-t", topic, "--partition", "0", "--keep-partitions").error
    assert "not named TOPIC-PARTITION" in moldau("log", "import", path, "-t", topic, "--keep-partitions").error
    assert "holds no log files" in moldau("log", "import", str(tmp_path), "-t", topic).error
    assert "No such file" in moldau("log", "import", f"{path}.not", "-t", topic).error
    assert "--topic" in moldau("log", "import", path).error
    assert "is using" in moldau("log", "import", str(broker.data), "-t", topic).error
    shutil.copy(path, f"{path}.swap")
    assert "interrupted" in moldau("log", "import", str(folder), "-t", topic).error
    (text := tmp_path / "server.log").write_text("[2013-01-01 00:00:00] INFO starting\n" * 10)
    assert "cannot be read at position 0" in moldau("log", "import", str(text), "-t", topic).error
    os.mkfifo(tmp_path / "pipe")
    assert "it is no file" in moldau("log", "import", str(tmp_path / "pipe"), "-t", topic).error
    assert moldau("log", "import", str(tmp_path / "empty"), "-t", topic).code == 1


def test_progress_is_told(
    moldau: Moldau, make_topic: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_import, "PROGRESS_S", 0)
    monkeypatch.setattr(log_import, "SETTLED_AT_ONCE", 10)
    path = segment(tmp_path, 0, numbered(0, 100))
    lines = moldau("log", "import", str(path), "--topic", make_topic()).err.splitlines()
    assert lines and all(line.endswith(f" of {path}") and " %: " in line for line in lines)


INTERRUPTED = """
import os, runpy, signal
from moldau.cli.log.importing import _Import

send = _Import._send

def counted(self, *more):
    if self._sent == 7_000:
        os.kill(os.getpid(), signal.SIGNAL)
    send(self, *more)

_Import._send = counted
runpy.run_module("moldau", run_name="__main__")
"""
"""The command, to which a signal comes at a certain record."""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_interrupted_it_says_where_to_go_on_and_nothing_is_lost_or_doubled(
    name: str, code: int, moldau: Moldau, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, count = make_topic(), 20_000
    segment(tmp_path, 0, numbered(0, count))
    command = [
        sys.executable,
        "-c",
        INTERRUPTED.replace("SIGNAL", name),
        "log",
        "import",
        str(tmp_path),
        "--topic",
        topic,
    ]
    environment = {**os.environ, "MOLDAU_BOOTSTRAP_SERVER": broker.address, "PYTHONPATH": str(SOURCE)}
    importing = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = importing.communicate(timeout=stretched(60))
    assert (importing.returncode, out) == (code, ""), err
    assert err.startswith("error: interrupted; ")
    from_offset = err.rpartition(" ")[2].strip()
    assert 0 < int(from_offset) <= 7_001
    rest = moldau("log", "import", str(tmp_path), "--topic", topic, "--from-offset", from_offset)
    assert rest.out == f"imported {count - int(from_offset):,} records into {topic}\n"
    assert values(broker, topic) == [b"v%d" % i for i in range(count)]
