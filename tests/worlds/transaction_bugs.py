"""Bugs of transactions that worlds of transactions must find (`mutations`)."""

from collections.abc import Callable, Iterator
from typing import Any

from moldau.coordinators.transactions.transaction import repeated
from moldau.errors import ErrorCode
from tests.replacing import Instead, nothing, returns
from tests.worlds.changed_answers import forgiving
from tests.worlds.group_bugs import ANSWERS_BEFORE_THE_COMMIT, OFFSETS

COMMITTED_READING = "moldau.log.committed:CommittedReading"
SHARD = "moldau.coordinators.transactions.shard:TransactionShard"

Do = Callable[..., Any]


def up_to_the_high_watermark(_: Do, self: Any, high_watermark: Any) -> Any:
    return high_watermark


def without_markers(start: Do, self: Any, now: Any, out: Any) -> Iterator[int]:
    mark, self._mark = self._mark, lambda *_: None
    yield from start(self, now, out)
    self._mark = mark


def epoch_of_the_first(_: Do, was: Any, timeout_ms: int, recovers: bool, now: Any) -> Any:
    return repeated(was, timeout_ms, now)


def as_its_successor(check: Do, self: Any, ask: Any, was: Any) -> Any:
    return check(self, ask._replace(epoch=was.epoch), was)


def at_once(_: Do, self: Any, producer_id: int, record: Any) -> Any:
    return self.apply(record)


def committed(end: Do, self: Any, producer_id: int, commits: bool) -> None:
    end(self, producer_id, True)


def all_committed(markers: Do, self: Any, transaction: Any) -> Any:
    return markers(self, transaction)._replace(commits=True)


def all_but_the_first(markers: Do, self: Any, transaction: Any) -> Any:
    return markers(self, transaction)._replace(partitions=tuple(transaction.partitions)[1:])


def markers_alone(replay: Do, self: Any, header: Any, marker: Any = None) -> Any:
    return None if marker is None else replay(self, header, marker)


WITH_POWER_LOSS: dict[str, list[Instead]] = {
    "the end of a transaction is answered before it is committed": ANSWERS_BEFORE_THE_COMMIT,
}

BUGS: dict[str, list[Instead]] = {
    "open transactions are shown": [Instead(f"{COMMITTED_READING}.last_stable_offset", up_to_the_high_watermark)],
    "aborted transactions are not named to readers": [Instead(f"{COMMITTED_READING}.aborted_in", returns([]))],
    "decided transactions are forgotten at a start": [Instead(f"{SHARD}.start", without_markers)],
    "a transaction never runs out of time": [Instead(f"{SHARD}._time_out", nothing)],
    "a second instance gets the epoch of the first": [
        Instead("moldau.coordinators.transactions.transaction:bumped", epoch_of_the_first)
    ],
    "a fenced producer adds partitions": [Instead(f"{SHARD}._check_add", forgiving(ErrorCode.PRODUCER_FENCED))],
    "a fenced producer ends the transaction of another": [Instead(f"{SHARD}._check_end", as_its_successor)],
    "offsets count before their transaction has ended": [Instead(f"{OFFSETS}.apply_pending", at_once)],
    "offsets of aborted transactions count": [Instead(f"{OFFSETS}.end", committed)],
    "aborted transactions are marked as committed": [Instead(f"{SHARD}._markers", all_committed)],
    "one partition of a transaction gets no marker": [Instead(f"{SHARD}._markers", all_but_the_first)],
    "transactions are not replayed in recovery": [
        Instead("moldau.log.producers.producers:Producers.replay", markers_alone)
    ],
}
