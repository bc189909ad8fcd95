"""`moldau log dump` on the files of a broker that does not run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from harness.logs import NOW_MS, names
from moldau.runtime import RealDisk
from tests.cli.conftest import Moldau
from tests.files.inspection.filled import BATCHES, RECORDS, fill
from tests.records.old_messages import message

OFFSET_KEY = bytes.fromhex("0001 0005") + b"group" + bytes.fromhex("0002") + b"to" + bytes.fromhex("00000003")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled")
    fill(path)
    return path


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_partition_as_text_has_a_line_for_every_file_batch_and_record(offline: Moldau, folder: Path) -> None:
    dumped = offline("log", "dump", str(folder / "flights-0"), "--records")
    assert dumped.code == 0, dumped.err
    files = [line for line in dumped.lines if not line.startswith(" ")]
    assert [line.partition(":")[0] for line in files] == [
        str(folder / "flights-0" / n) for n in names(folder / "flights-0")
    ]
    assert sum(line.startswith("  batch ") for line in dumped.lines) == BATCHES
    assert sum(line.startswith("    record ") for line in dumped.lines) == RECORDS
    assert '    record 1 timestamp=2023-11-14T22:13:20.001Z key="key-1" value=null' in dumped.lines
    assert any("key=null value=base64(/wA=)" in line for line in dumped.lines)
    assert "  leader epoch=3 start_offset=300" in dumped.lines
    plain = offline("log", "dump", str(folder / "flights-0"))
    assert not any(line.startswith("    record ") for line in plain.lines)


def test_json_is_one_object_a_line_and_what_is_no_text_is_base64(offline: Moldau, folder: Path) -> None:
    dumped = lines(offline("log", "dump", str(folder / "flights-0"), "--records", "--json").out)
    records = [line for line in dumped if line["type"] == "record"]
    assert [record["offset"] for record in records] == list(range(RECORDS))
    assert records[0] == {
        "type": "record", "offset": 0, "timestamp_ms": NOW_MS, "key": None, "value_base64": "/wA=",
        "headers": [{"name": "name", "value_base64": "/g=="}, {"name": "none", "value": None}],
    }  # fmt: skip


def test_a_whole_log_folder_is_dumped_with_its_checkpoints(offline: Moldau, folder: Path) -> None:
    dumped = lines(offline("log", "dump", str(folder), "--json").out)
    paths = {Path(line["path"]).relative_to(folder).parts[0] for line in dumped if line["type"] == "file"}
    assert {"meta.properties", "flights-0", "bookings-0", "hollow-0", "recovery-point-offset-checkpoint"} <= paths


def test_records_of_offsets_are_decoded_by_the_name_of_the_folder_or_as_one_says(
    offline: Moldau, tmp_path: Path
) -> None:
    partition = tmp_path / "__consumer_offsets-7"
    partition.mkdir()
    path = partition / f"{0:020d}.log"
    path.write_bytes(message(0, OFFSET_KEY, None))
    [record] = [
        line for line in lines(offline("log", "dump", str(path), "-r", "--json").out) if line["type"] == "record"
    ]
    meant = {"type": "offset", "group": "group", "topic": "to", "partition": 3, "value": None}
    assert record["decoded"] == meant
    assert '"group": "group"' in offline("log", "dump", str(path), "-r").out
    other = tmp_path / path.name
    other.write_bytes(path.read_bytes())
    assert '"decoded"' not in offline("log", "dump", str(other), "-r", "--json").out
    [record] = [
        line
        for line in lines(offline("log", "dump", str(other), "--decoder", "offsets", "--json").out)
        if line["type"] == "record"
    ]
    assert record["decoded"] == meant
    assert '{"type": "unknown"}' in offline("log", "dump", str(other), "--decoder", "transactions", "--json").out
    assert offline("log", "dump", str(other), "--decoder", "what").code == 2


@pytest.mark.parametrize("option", [("--records",), ("--decoder", "offsets"), ("--json",)])
def test_columns_take_no_option_of_what_is_printed(
    option: tuple[str, ...], offline: Moldau, folder: Path, tmp_path: Path
) -> None:
    dumped = offline("log", "dump", str(folder / "flights-0"), "--arrow", str(tmp_path / "out"), *option)
    assert dumped.code == 2 and f"{option[0]} cannot be combined with --arrow" in dumped.error


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_records_become_columns(offline: Moldau, folder: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    dumped = offline("log", "dump", str(folder), f"--{kind}", str(target))
    assert dumped.code == 0 and dumped.out == "", dumped
    table = pyarrow.parquet.read_table(target) if kind == "parquet" else pa.ipc.open_file(target).read_all()
    flights = table.filter(pc.equal(table["topic"], "flights"))
    assert flights["offset"].to_pylist() == list(range(RECORDS))
    first = flights.slice(0, 1).to_pylist()[0]
    assert (first["key"], first["value"], first["partition"], first["timestampType"]) == (None, b"\xff\x00", 0, 0)
    assert first["headers"] == [{"key": "name", "value": b"\xfe"}, {"key": "none", "value": None}]
    assert set(table["topic"].to_pylist()) == {"flights", "bookings"}


def test_old_messages_become_columns_and_what_cannot_be_read_is_named(offline: Moldau, tmp_path: Path) -> None:
    partition = tmp_path / "old-4"
    partition.mkdir()
    path = partition / f"{0:020d}.log"
    path.write_bytes(message(5, b"k", b"v", magic=1, timestamp=NOW_MS) + b"\x01" * 40)
    dumped = offline("log", "dump", str(path), "--parquet", str(tmp_path / "out"))
    assert dumped.code == 1
    assert dumped.err.splitlines()[0] == f"1 record: {tmp_path / 'out'}" and str(path) in dumped.err.splitlines()[1]
    [row] = pyarrow.parquet.read_table(tmp_path / "out").to_pylist()
    assert (row["topic"], row["partition"], row["offset"], row["value"]) == ("old", 4, 5, b"v")


def test_columns_without_pyarrow_say_what_to_install(
    offline: Moldau, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = offline("log", "dump", str(folder), "--arrow", str(tmp_path / "out")).error
    assert said == "columns need pyarrow: install it with `pip install 'moldau[arrow]'`"


def test_what_cannot_be_read_is_a_line_and_an_exit_code(offline: Moldau, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes((folder / "flights-0" / path.name).read_bytes()[:-3])
    dumped = offline("log", "dump", str(path))
    assert dumped.code == 1
    assert dumped.lines[-1].startswith("  problem at position ") and "cut off" in dumped.lines[-1]
    (tmp_path / "thing").write_text("")
    assert offline("log", "dump", str(tmp_path / "thing")).code == 1
    assert "No such file" in offline("log", "dump", str(tmp_path / "nowhere")).error
    os.mkfifo(tmp_path / f"{1:020d}.log")
    assert "it is no file" in offline("log", "dump", str(tmp_path / f"{1:020d}.log")).error


def test_what_a_terminal_would_obey_is_only_shown(offline: Moldau, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"a\x1b[2J\xff-0")
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(message(0, b"\x1b[31m", "\x9b31m".encode()))
    (folder / "meta.properties").write_text("cluster.id=\x1b]0;title\x07\n")
    for arguments in (("dump", "-r"), ("verify",)):
        shown = offline("log", *arguments, str(folder))
        assert not {"\x1b", "\x9b", "\x07"} & set(shown.out), shown.out
        said = offline("log", *arguments, str(folder), "--json").out
        assert all(json.loads(line) for line in said.splitlines())


def test_a_running_broker_s_files_are_looked_at_only_if_one_insists(offline: Moldau, folder: Path) -> None:
    release = RealDisk().lock(folder / ".lock")
    try:
        for path in (folder, folder / "flights-0", folder / "flights-0" / f"{0:020d}.log"):
            said = offline("log", "dump", str(path)).error
            assert said == f"a broker is using {folder.resolve()}: stop it first, or look anyway with --force"
        assert offline("log", "dump", str(folder), "--force").code == 0
    finally:
        release()
    assert offline("log", "dump", str(folder)).code == 0


def test_the_lock_of_a_java_broker_counts_as_well(offline: Moldau, folder: Path) -> None:
    held = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", held, str(folder / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert "a broker is using" in offline("log", "dump", str(folder)).error
        holder.communicate(b"\n")
    assert offline("log", "dump", str(folder)).code == 0


def test_a_reader_that_goes_away_ends_it_without_a_word(folder: Path) -> None:
    command = [sys.executable, "-m", "moldau", "log", "dump", "--records", *[str(folder)] * 40]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dumping:
        assert dumping.stdout is not None and dumping.stderr is not None
        assert dumping.stdout.readline()
        dumping.stdout.close()
        assert dumping.stderr.read() == b""
        assert dumping.wait() == 1
