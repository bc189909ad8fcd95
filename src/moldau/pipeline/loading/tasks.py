"""What a Spark task of a load does: fetch its portion, have it decoded, write it, return a description of each file.

An expected failure is returned as a sentence. Spark retries a task whose worker dies; the files of the attempt that
died are named by no commit, so they are not in the table and `vacuum` removes them.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.fetching import read_columns
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.loading.rejected import Rejections
from moldau.pipeline.loading.target import Target
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.tables.data_file import DataFile

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
    a new plan, may succeed later."""

    portion: int
    files: tuple[DataFile, ...] = ()
    rejected: tuple[DataFile, ...] = ()
    rejections: Rejections = Rejections()
    tombstones: tuple[DataFile, ...] = ()
    failure: str = ""
    again: bool = False


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
    try:
        writer = TopicWriter(portion.target, f"part-{portion.number:05d}-{portion.target.load_id}-{attempt}")
        for part in portion.parts:
            for batch in read_columns(
                portion.target.bootstrap, *part.topic_partition, part.start, part.end,
                isolation_level=portion.target.isolation_level, topic_id=portion.target.topic_id,
            ):  # fmt: skip
                writer.add(batch)
                allowed = portion.target.rejected_max
                if allowed is not None and writer.rejections.records > allowed:
                    # the load fails, so nothing is kept
                    return PortionResult(portion.number, rejections=writer.rejections)
        return PortionResult(portion.number, *writer.finish())
    except KafkaError as error:  # first, because a broken connection is an OSError too
        said = f"{str(error).rstrip('.')}."
        again = error.retriable or error.code in PLANNED_ANEW
    except OSError as error:
        said = f"{error.strerror or error} ({error.filename or portion.target.table.uri})."
    except MoldauError as error:
        said = f"{str(error).rstrip('.')}."
    tp = TopicPartition(part.topic, part.partition)
    sentence = f"{tp} from offset {part.start} to {part.end} could not be loaded: {said}"
    return PortionResult(portion.number, failure=sentence, again=again)
