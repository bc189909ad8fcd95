"""When a table has enough small files to compact them, and to which size."""

from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.tables.small_files import MIB, TARGETS, compaction_target
from moldau.pipeline.tables.table import Listed


def files(count: int, size: int, folder: str = "_date=2013-01-01") -> list[Listed]:
    return [Listed(f"{folder}/part-{n}-{size}.parquet", size, 1, 0) for n in range(count)]


def test_small_files_of_one_partition_are_written_together_once_there_are_enough() -> None:
    assert compaction_target(files(49, 1000), 50) is None
    assert compaction_target(files(50, 1000), 50) == TARGETS[0]
    assert compaction_target([*files(30, 1000), *files(30, 1000, "_date=2013-01-02")], 50) is None
    assert compaction_target(files(5, 1000), 5) == TARGETS[0]


def test_their_results_are_written_together_later_and_large_files_never() -> None:
    assert compaction_target([*files(49, 1000), *files(49, 10 * MIB)], 50) is None
    assert compaction_target([*files(10, 1000), *files(50, 10 * MIB)], 50) == TARGETS[1]
    assert compaction_target(files(1000, 100 * MIB), 50) is None


def test_loads_compact_unless_told_otherwise() -> None:
    assert compaction_target(files(Settings().small_files_max, 1000), Settings().small_files_max) == TARGETS[0]
