"""The line about partitions whose log folder is not served."""

import pytest

from moldau.replication.unserved import offline_line

WHY = (
    "it is offline, not mounted, missing in log.dirs, or was replaced by an empty folder. Put it back and restart the "
    "broker; if it is lost for good, "
)
ONCE = "start once with --accept-empty all (or TOPIC-N), and they start empty and fetch what other replicas have"


@pytest.mark.parametrize(
    ("count", "directories", "offline"),
    [
        (1, ["a"], "1 partition is offline with the log folder that has directory.id=a: "),
        (3, ["b", "a", "b"], "3 partitions are offline with the log folder that has directory.id=a, b: "),
        (2, [""], "2 partitions are offline with the log folder that has directory.id=(not assigned): "),
    ],
)
def test_the_line_names_the_folder_and_the_option_that_goes_on(
    count: int, directories: list[str], offline: str
) -> None:
    assert offline_line(count, directories, None) == offline + WHY + ONCE
    repaired = "`moldau log repair x y` can start them empty"
    assert offline_line(count, directories, "moldau log repair x y") == offline + WHY + repaired
