"""What a Spark task of a load does: fetch its portion, have it decoded, write it, return a description of each file.

An expected failure is returned as a sentence. Spark retries a task whose worker dies; the files of the attempt that
died are named by no commit, so they are not in the table and `vacuum` removes them.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moldau.client.fetching import read_columns
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.loading.target import Target
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.tables.data_file import DataFile


class TaskPortion(NamedTuple):
    """The ranges of one task, all of the target's topic."""

    number: int
    target: Target
    parts: list[OffsetRange]


class Outcome(NamedTuple):
    """The result of one portion; `failure` is a sentence, or empty on success."""

    portion: int
    files: tuple[DataFile, ...]
    rejected: tuple[DataFile, ...] = ()
    failure: str = ""


def write_portions(portions: Iterable[TaskPortion]) -> Iterator[Outcome]:
    """Runs in a Spark task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = context.taskAttemptId() if context else 0
    for portion in portions:
        yield write_portion(portion, attempt)


def write_portion(portion: TaskPortion, attempt: int) -> Outcome:
    """Write one portion. `attempt` makes the names of the files unique among the attempts of a load."""
    from moldau.pipeline.loading.writing import TopicWriter

    part = portion.parts[0]
    try:
        writer = TopicWriter(portion.target, f"part-{portion.number:05d}-{portion.target.load_id}-{attempt}")
        for part in portion.parts:
            for batch in read_columns(
                portion.target.bootstrap, *part.topic_partition, part.start, part.end,
                isolation_level=portion.target.isolation_level,
            ):  # fmt: skip
                writer.add(batch)
        return Outcome(portion.number, *writer.finish())
    except OSError as error:
        said = f"{error.strerror or error} ({error.filename or portion.target.table.uri})."
    except MoldauError as error:
        said = f"{str(error).rstrip('.')}."
    tp = TopicPartition(part.topic, part.partition)
    return Outcome(portion.number, (), (), f"{tp} from offset {part.start} to {part.end} could not be loaded: {said}")
