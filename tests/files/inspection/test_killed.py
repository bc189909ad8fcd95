"""What a broker that was killed leaves is noted, and is no error."""

from pathlib import Path

from moldau.files.inspection.findings import CheckedTotals
from moldau.files.inspection.log_folders import verify
from moldau.runtime import RealDisk
from tests.files.inspection.filled import fill


def test_an_index_whose_log_was_the_first_to_go_is_noted(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    log = sorted((tmp_path / "flights-0").glob("*.log"))[0]
    log.rename(log.with_name(log.name + ".deleted"))
    alone = [
        found for found in verify(RealDisk(), tmp_path, CheckedTotals()) if "the index has no log file" in found.message
    ]
    assert [(found.path.name, found.wrong) for found in alone] == [
        (f"{log.stem}.index", False),
        (f"{log.stem}.timeindex", False),
    ]


def test_indexes_that_wait_for_their_names_are_those_of_their_log(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    log = sorted((tmp_path / "flights-0").glob("*.log"))[0]
    indexes = [log.with_suffix(suffix) for suffix in (".index", ".timeindex")]
    for index in indexes:
        index.rename(index.with_name(index.name + ".swap"))
    [found] = verify(RealDisk(), tmp_path, CheckedTotals())
    assert "interrupted while it replaced segments (2)" in found.message and not found.wrong
    waiting = indexes[0].with_name(indexes[0].name + ".swap")
    waiting.write_bytes(bytes(reversed(waiting.read_bytes())))
    assert any(found.wrong and found.path == waiting for found in verify(RealDisk(), tmp_path, CheckedTotals()))
