"""Whatever transactions do, readers of committed records get what a plain list says, wherever they begin and however
little they ask for; over restarts, kills and deletions too."""

import random
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs import NOW_MS, append, config, open_log
from harness.tiers import examples
from moldau.log.log import Log
from moldau.names import Offset
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, batches
from moldau.records.rows import iterate

SMALL = config(segment_bytes=700, index_interval_bytes=150, retention_bytes=2000, file_delete_delay_ms=0)
PRODUCERS = 4
ACTIONS = ("write",) * 8 + ("plain",) * 2 + ("commit",) * 2 + ("abort",) * 3 + ("stop", "kill", "retain", "delete")


class Written(NamedTuple):
    offset: int
    producer_id: int
    """-1 outside of transactions."""
    transaction: int


class Story:
    def __init__(self, folder: Path):
        self.folder = folder
        self.log = open_log(folder, config=SMALL)
        self.written: list[Written] = []
        self.fate: dict[int, bool] = {}
        """Whether a transaction that has ended was committed."""
        self.first: dict[int, int] = {}
        """First offsets of open transactions, by producer."""
        self.epochs = [0] * PRODUCERS
        self.sequences = [0] * PRODUCERS
        self.checkpoint = (0, 0)
        self.stable = 0

    def write(self, producer_id: int, count: int) -> None:
        appended = append(
            self.log,
            [Row(None, b"v" * 20, NOW_MS)] * count,
            attributes=TRANSACTIONAL_BIT,
            producer_id=producer_id,
            producer_epoch=self.epochs[producer_id],
            base_sequence=self.sequences[producer_id],
        )
        assert not appended.error, appended
        self.sequences[producer_id] += count
        first = self.first.setdefault(producer_id, appended.base_offset)
        self.written += [Written(appended.base_offset + number, producer_id, first) for number in range(count)]

    def plain(self, _: int, count: int) -> None:
        base = append(self.log, [Row(None, b"p", NOW_MS)] * count).base_offset
        self.written += [Written(base + number, -1, -1) for number in range(count)]

    def _end(self, producer_id: int, commits: bool) -> None:
        self.epochs[producer_id] += 1
        self.sequences[producer_id] = 0
        marker = Marker(commits, 0)
        assert not self.log.append_marker(producer_id, self.epochs[producer_id], marker, 2, 0, NOW_MS).error
        if producer_id in self.first:
            self.fate[self.first.pop(producer_id)] = commits

    def commit(self, producer_id: int, _: int) -> None:
        self._end(producer_id, True)

    def abort(self, producer_id: int, _: int) -> None:
        self._end(producer_id, False)

    def stop(self, *_: int) -> None:
        start = self.log.log_start_offset
        self.log.close()
        self.log = open_log(self.folder, config=SMALL, log_start=start)

    def kill(self, _: int, count: int) -> None:
        """After a flush, or long after one."""
        if count % 2:
            self.log.flush()
        start, point = int(self.log.log_start_offset), self.log.recovery_point
        self.log.abandon()
        self.log = open_log(self.folder, config=SMALL, clean=False, log_start=start, recovery_point=point)

    def retain(self, *_: int) -> None:
        self.log.retain(NOW_MS, int(self.log.log_end_offset))

    def delete(self, *_: int) -> None:
        """Some records at the start, as DeleteRecords does; what goes with them of an open transaction is gone."""
        start, end = int(self.log.log_start_offset), int(self.log.log_end_offset)
        self.log.delete_records_before((start * 3 + end) // 4)

    def check(self, chance: random.Random) -> None:
        log = self.log
        start, end = int(log.log_start_offset), int(log.log_end_offset)
        oldest = min(self.first.values(), default=end)
        stable = log.committed.last_stable_offset(Offset(end))
        assert stable == max(min(oldest, end), start)
        assert stable >= self.stable
        self.stable = stable
        committed = {one.offset for one in self.written if one.producer_id < 0 or self.fate.get(one.transaction)}
        for _ in range(4):
            offset = chance.randint(start, end)
            self.check_read(log, offset, chance.choice((1, 200, 1000)), committed)

    def check_read(self, log: Log, offset: int, size: int, committed: set[int]) -> None:
        piece = log.read(offset, size, self.stable)
        aborted = [(one.producer_id, one.first_offset) for one in log.committed.aborted_in(offset, piece)]
        if piece is None:
            assert offset >= self.stable and not aborted
            return
        data = piece.file.read(piece.length, piece.offset)
        behind = max(header.next_offset for _, header in batches(data))
        found = [record.offset for record in iterate(data, offset, aborted=aborted)]
        assert found == sorted(at for at in committed if offset <= at < behind)


steps = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, PRODUCERS - 1), st.integers(1, 3)), min_size=10, max_size=80
)


@settings(max_examples=examples(20, 30))
@given(steps, st.randoms(use_true_random=False))
def test_readers_of_committed_records_get_what_was_committed(
    steps: list[tuple[str, int, int]], chance: random.Random
) -> None:
    with tempfile.TemporaryDirectory(prefix="moldau-log-") as folder:
        story = Story(Path(folder) / "p")
        for action, producer_id, count in steps:
            getattr(story, action)(producer_id, count)
            story.check(chance)
        story.log.close()
