"""When files that are part of no log any more are removed."""

from pathlib import Path

from harness.logs import NOW_MS
from moldau.log.deletion import Doomed
from moldau.runtime import Runtime

HOUR_MS = 3_600_000


def test_files_stay_no_longer_because_the_clock_was_set_back(tmp_path: Path) -> None:
    doomed, path = Doomed(Runtime().disk), tmp_path / "00000000000000000000.log.deleted"
    path.touch()
    doomed.add(path, NOW_MS + 60_000)
    assert doomed.remove_due(NOW_MS) == doomed.remove_due(NOW_MS - HOUR_MS) == 0
    assert doomed.remove_due(NOW_MS - HOUR_MS + 59_999) == 0
    assert doomed.remove_due(NOW_MS - HOUR_MS + 60_000) == 1
    assert not path.exists()
