"""The table of durations: kept, merged, and without files that are gone."""

from pathlib import Path

from tools import durations
from tools.durations import Durations

HERE = "tests/tools/test_durations.py"


def of(**columns: dict[str, float]) -> Durations:
    """By the names of columns, with underscores."""
    return Durations({name: columns.get(name.replace(" ", "_"), {}) for name in durations.COLUMNS})


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    table = of(test={"a": 1.5, "b": 2.0}, check={"b": 30.0}, check_processor={"b": 4.0})
    durations.write(table, tmp_path / "table")
    head = "file\ttest\ttest processor\tcheck\tcheck processor\n"
    assert (tmp_path / "table").read_text() == f"{head}a\t1.5\t\t\t\nb\t2.0\t\t30.0\t4.0\n"
    assert durations.read(tmp_path / "table") == table
    assert durations.read(tmp_path / "none") == Durations()


def test_files_that_are_gone_are_forgotten_and_others_are_kept() -> None:
    table = of(test={"tests/gone.py": 1.0}, check={"tests/gone.py": 1.0, HERE: 2.0}, check_processor={HERE: 1.0})
    table.take("test", {HERE: 0.5}, {HERE: 0.2})
    assert table == of(test={HERE: 0.5}, test_processor={HERE: 0.2}, check={HERE: 2.0}, check_processor={HERE: 1.0})


def test_a_file_that_nobody_measured_is_judged_by_its_tests() -> None:
    table = of(test={HERE: 7.0}, test_processor={HERE: 6.0})
    assert (table.of("test", HERE, 100), table.used("test", HERE, 100)) == (7.0, 6.0)
    expected = 100 * durations.UNKNOWN_TEST_S
    assert table.of("long", HERE, 100) == expected
    assert table.used("long", HERE, 100) == expected * durations.UNKNOWN_SHARE


def test_files_together_take_as_long_as_workers_wait_or_processors_work() -> None:
    waits = of(test={HERE: 80.0}, test_processor={HERE: 8.0})
    works = of(test={HERE: 80.0}, test_processor={HERE: 72.0})
    assert waits.expected_s("test", {HERE: 3}, 4, 2) == 20.0
    assert works.expected_s("test", {HERE: 3}, 4, 2) == 72.0 / (2 * durations.BUSY)


def test_every_file_of_the_table_exists() -> None:
    known = durations.read().seconds.values()
    assert [file for seconds in known for file in seconds if not (durations.ROOT / file).exists()] == []
