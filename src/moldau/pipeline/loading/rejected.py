"""The rejected records of a load: their number, the first of them, and the limit that the user has set."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from moldau.errors import MoldauError
from moldau.names import counted

FIRST_MAX: Final = 3
"""As many records are named in a sentence."""


class RejectedTooMany(MoldauError):
    """More records were rejected than the user allows; nothing was committed."""


class RejectedRecord(NamedTuple):
    """The place of a record, and why it was rejected."""

    partition: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"partition {self.partition} offset {self.offset}: {self.reason}"


class Rejections(NamedTuple):
    """Rejected records of one topic; `first` are those with the least partitions and offsets."""

    records: int = 0
    first: tuple[RejectedRecord, ...] = ()

    def and_also(self, other: "Rejections") -> "Rejections":
        return Rejections(self.records + other.records, tuple(sorted({*self.first, *other.first})[:FIRST_MAX]))

    @classmethod
    def of(cls, rejected: Any) -> "Rejections":
        """Of a batch with the columns `_partition`, `_offset` and `reason`."""
        names = ("_partition", "_offset", "reason")
        rows = [rejected.column(name).slice(0, FIRST_MAX).to_pylist() for name in names]
        return cls(rejected.num_rows, tuple(RejectedRecord(*row) for row in zip(*rows, strict=True)))

    @classmethod
    def total(cls, parts: Iterable["Rejections"]) -> "Rejections":
        total = cls()
        for part in parts:
            total = total.and_also(part)
        return total


def check(by_topic: Mapping[str, Rejections], records_max: int | None) -> None:
    """Raise RejectedTooMany if the topics of a load have more rejected records than that, None for any number."""
    total = sum(one.records for one in by_topic.values())
    if records_max is None or total <= records_max:
        return
    named = [f"{topic} {record}" for topic, one in sorted(by_topic.items()) for record in one.first][:FIRST_MAX]
    allowed = f"more than {counted(records_max, 'record')}" if records_max else "records"
    raise RejectedTooMany(
        f"The load has rejected {allowed} and nothing was committed; the first "
        f"{'is' if len(named) == 1 else 'are'}: {'; '.join(named)}."
    )


def sentences(by_topic: Mapping[str, Rejections]) -> tuple[str, ...]:
    """A sentence for each topic with rejected records."""
    return tuple(
        f"{topic}: {counted(one.records, 'record')} rejected, the first is {one.first[0]}."
        for topic, one in sorted(by_topic.items())
        if one.first
    )
