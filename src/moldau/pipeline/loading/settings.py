"""How a load reads and writes, and what it returns."""

from dataclasses import dataclass, field

from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading.removed_rows import RemovedRows
from moldau.pipeline.tables.small_files import SMALL_FILES_MAX

COMPRESSION = "lz4"


@dataclass(frozen=True)
class Settings:
    """`partition_by` counts for new tables only.

    `since_ms` is where partitions begin that were never loaded, and `until_ms` where the load ends: at the first record
    of that time or a later one. A commit takes about `records_max` records at most. Tables with `small_files_max` small
    files in a partition are compacted; 0 for never. The offsets are committed to `group` as well. `removed_rows` says
    what happens if another tool removed rows that a load had added. A load that rejects more than `rejected_max`
    records fails. `keys` says how keys are decoded. With `upsert` tables have one row per key, the newest.
    """

    fail_on_data_loss: bool = True
    compression: str = COMPRESSION
    isolation_level: str = "read_committed"
    partition_by: str = "date"
    decoding: Decoding = field(default_factory=Decoding)
    since_ms: int | None = None
    until_ms: int | None = None
    records_max: int | None = None
    small_files_max: int = SMALL_FILES_MAX
    group: str | None = None
    removed_rows: RemovedRows = "refuse"
    rejected_max: int | None = None
    keys: Decoding = Decoding(of="key")
    upsert: bool = False


@dataclass(frozen=True)
class Commit:
    """What a load added to the table of one topic, and the version of the table that has it. With `--upsert` the
    records are the rows that were put, and `deleted` those that tombstones deleted."""

    topic: str
    version: int
    files: int
    records: int
    bytes: int
    rejected: int
    deleted: int = 0


@dataclass(frozen=True)
class Loaded:
    """The result of a load: a commit for each topic that had something new. The seconds last from the first fetch to
    the last commit. Each of the `notes` is a sentence about removed rows that were accepted, columns whose values
    disagree, or rejected records."""

    commits: tuple[Commit, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def and_then(self, later: "Loaded") -> "Loaded":
        """This load and the one after it."""
        notes = self.notes + later.notes
        return Loaded(self.commits + later.commits, self.seconds + later.seconds, notes)

    @property
    def records(self) -> int:
        return sum(commit.records for commit in self.commits)

    @property
    def rejected(self) -> int:
        return sum(commit.rejected for commit in self.commits)

    @property
    def deleted(self) -> int:
        return sum(commit.deleted for commit in self.commits)

    @property
    def bytes(self) -> int:
        return sum(commit.bytes for commit in self.commits)

    @property
    def files(self) -> int:
        return sum(commit.files for commit in self.commits)

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0
