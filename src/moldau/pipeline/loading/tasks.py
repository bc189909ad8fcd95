"""What a Spark task of a load does: fetch its portion, have it decoded, write it, return a description of each file.

An expected failure is returned as a sentence. Spark retries a task whose worker dies; the files of the attempt that
died are named by no commit, so they are not in the table and `vacuum` removes them.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.client.fetching import read_columns
from moldau.errors import ErrorCode, KafkaError, LogTruncated, MoldauError
from moldau.pipeline.loading.rejected import Rejections
from moldau.pipeline.loading.target import Target
from moldau.pipeline.positions import earliest
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.tables.data_file import DataFile
from moldau.pipeline.tables.storage import words_of

if TYPE_CHECKING:
    from pyspark import Accumulator


PLANNED_ANEW = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_ID)
"""The log has changed since the plan: the next plan says what that means."""


class TaskPortion(NamedTuple):
    """The ranges of one task, all of the target's topic."""

    number: int
    target: Target
    parts: list[OffsetRange]


class PortionResult(NamedTuple):
    """The result of one portion; `failure` is a sentence, or empty on success, and `again` whether the same portion, or
    a new plan, may succeed later. `expired` are offsets that were gone before they could be read."""

    portion: int
    files: tuple[DataFile, ...] = ()
    rejected: tuple[DataFile, ...] = ()
    rejections: Rejections = Rejections()
    tombstones: tuple[DataFile, ...] = ()
    failure: str = ""
    again: bool = False
    expired: tuple[OffsetRange, ...] = ()


def write_portions(portions: Iterable[TaskPortion], written: "Accumulator[tuple[int, int]]") -> Iterator[PortionResult]:
    """Runs in a Spark task; adds the records and bytes of its files to `written`."""
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = context.taskAttemptId() if context else 0
    for portion in portions:
        outcome = write_portion(portion, attempt)
        written.add((sum(file.records for file in outcome.files), sum(file.bytes for file in outcome.files)))
        yield outcome


def write_portion(portion: TaskPortion, attempt: int) -> PortionResult:
    """Write one portion. `attempt` makes the names of the files unique among the attempts of a load."""
    from moldau.pipeline.loading.writing import TopicWriter

    part, again = portion.parts[0], False
    expired: list[OffsetRange] = []
    try:
        writer = TopicWriter(portion.target, f"part-{portion.number:05d}-{portion.target.load_id}-{attempt}")
        for part in portion.parts:
            for batch in _batches(portion.target, part, expired):
                writer.add(batch)
                allowed = portion.target.rejected_max
                if allowed is not None and writer.rejections.records > allowed:
                    # the load fails, so nothing is kept
                    return PortionResult(portion.number, rejections=writer.rejections)
        return PortionResult(portion.number, *writer.finish(), expired=tuple(expired))
    except KafkaError as error:  # first, because a broken connection is an OSError too
        said = f"{str(error).rstrip('.')}."
        again = error.retriable or error.code in PLANNED_ANEW
    except OSError as error:
        words, remedy = words_of(error)
        said = f"{words} ({error.filename or portion.target.table.uri}){remedy}."
    except MoldauError as error:
        said = f"{str(error).rstrip('.')}."
    sentence = f"{part.topic_partition} from offset {part.start} to {part.end} could not be loaded: {said}"
    return PortionResult(portion.number, failure=sentence, again=again)


def _batches(target: Target, part: OffsetRange, expired: list[OffsetRange]) -> Iterator[Any]:
    """The records of a range. Where some expire before they are read, it goes on behind them if the user allows that,
    and adds them to `expired`."""
    at = part.start
    while at < part.end:
        try:
            for batch in read_columns(
                target.bootstrap, *part.topic_partition, at, part.end, isolation_level=target.isolation_level,
                topic_id=target.topic_id,
            ):  # fmt: skip
                at = batch.column("offset")[-1].as_py() + 1
                yield batch
            return
        except KafkaError as error:
            is_expired = error.code == ErrorCode.OFFSET_OUT_OF_RANGE and not isinstance(error, LogTruncated)
            if target.fail_on_data_loss or not is_expired:
                raise
            first = earliest(target.bootstrap, [part.topic_partition])[part.topic_partition]
            if first <= at:  # the log ends before `at`
                raise
            expired.append(part._replace(start=at, end=min(first, part.end)))
            at = first
