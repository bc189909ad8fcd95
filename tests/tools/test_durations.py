"""The table of durations: kept, merged, and without files that are gone."""

from pathlib import Path

from tools import durations
from tools.durations import Durations

HERE = "tests/tools/test_durations.py"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    table = Durations({"test": {"a": 1.5, "b": 2.0}, "check": {"b": 30.0}})
    durations.write(table, tmp_path / "table")
    assert (tmp_path / "table").read_text() == "file\ttest\tcheck\na\t1.5\t\nb\t2.0\t30.0\n"
    assert durations.read(tmp_path / "table") == table
    assert durations.read(tmp_path / "none") == Durations()


def test_files_that_are_gone_are_forgotten_and_others_are_kept() -> None:
    table = Durations({"test": {"tests/gone.py": 1.0}, "check": {"tests/gone.py": 1.0, HERE: 2.0}})
    table.take("test", {HERE: 0.5})
    assert table.seconds == {"test": {HERE: 0.5}, "check": {HERE: 2.0}}


def test_a_file_that_nobody_measured_is_judged_by_its_tests() -> None:
    table = Durations({"test": {HERE: 7.0}, "check": {}})
    assert table.of("test", HERE, 100) == 7.0
    assert table.of("long", HERE, 100) == 100 * durations.UNKNOWN_TEST_S


def test_every_file_of_the_table_exists() -> None:
    known = durations.read().seconds.values()
    assert [file for seconds in known for file in seconds if not (durations.ROOT / file).exists()] == []
