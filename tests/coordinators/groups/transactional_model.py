"""Which offsets count after a log, and which wait for the end of a transaction: by the places of records, as Kafka has
it, and in no hurry."""

from collections.abc import Iterable

from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.groups.records import read_record
from moldau.coordinators.offsets.records import OffsetRecord
from moldau.coordinators.replaying import ReplayStep
from moldau.names import TopicPartition

Key = tuple[str, TopicPartition]


def offsets_of(log: Iterable[InternalRecord | ReplayStep]) -> tuple[dict[Key, int], set[Key]]:
    """The committed offsets, and the keys that are not stable."""
    counts: dict[Key, tuple[int, int]] = {}
    waits: dict[int, dict[Key, tuple[int, int]]] = {}
    for at, written in enumerate(log):
        if isinstance(written, InternalRecord):
            known = read_record(written)
            if isinstance(known, OffsetRecord) and known.value is not None:
                counts[known.group, known.partition] = at, known.value.offset
            elif isinstance(known, OffsetRecord):
                for places in (counts, *waits.values()):
                    places.pop((known.group, known.partition), None)
        elif written.commits is None:
            known = read_record(written.records[0])
            assert isinstance(known, OffsetRecord) and known.value is not None
            waits.setdefault(written.producer_id, {})[known.group, known.partition] = at, known.value.offset
        else:
            ended = waits.pop(written.producer_id, {})
            for key, place in ended.items() if written.commits else ():
                counts[key] = max(counts.get(key, place), place)
    return {key: offset for key, (_, offset) in counts.items()}, {key for places in waits.values() for key in places}
