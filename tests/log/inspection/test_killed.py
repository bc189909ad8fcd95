"""What a broker that was killed leaves is noted, and is no error."""

from pathlib import Path

from moldau.log.inspection.findings import Seen
from moldau.log.inspection.log_folders import verify
from moldau.runtime import RealDisk
from tests.log.inspection.filled import fill


def test_an_index_whose_log_was_the_first_to_go_is_noted(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    log = sorted((tmp_path / "flights-0").glob("*.log"))[0]
    log.rename(log.with_name(log.name + ".deleted"))
    alone = [found for found in verify(RealDisk(), tmp_path, Seen()) if "no log that it is" in found.message]
    assert [(found.path.name, found.wrong) for found in alone] == [
        (f"{log.stem}.index", False),
        (f"{log.stem}.timeindex", False),
    ]
