"""What is wrong with the records that were read back, given what each sender was told. No file, no socket and no clock
is known here."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.replicated.sending import SOMEWHERE, UNKNOWN, key_of, place_of, value_of

SHOWN_MAX = 5


class Records(NamedTuple):
    """Some records of a partition, in the order of the log."""

    offsets: Sequence[int]
    keys: Sequence[bytes]
    values: Sequence[bytes]


class Audit:
    """`places` has for each sender where each of its records was acknowledged. A sender sends its records in order, and
    with a producer id."""

    def __init__(self, places: Mapping[str, "array[int]"]):
        self._places = places
        self._found = {name: array("q", [UNKNOWN]) * len(sent) for name, sent in places.items()}
        self._wrong: list[str] = []

    def read(self, partition: int, lots: Iterable[Records]) -> None:
        """All records of a partition: each was sent, and comes once and after those its sender sent before; no offset
        is left out."""
        last = dict.fromkeys(self._places, UNKNOWN)
        end: int | None = None
        for lot in lots:
            for offset, key, value in zip(*lot, strict=True):
                if end is not None and offset != end:
                    self._wrong.append(f"partition {partition}: offset {offset} follows {end - 1}")
                end = offset + 1
                self._meet(partition, offset, key, value, last)

    def _meet(self, partition: int, offset: int, key: bytes, value: bytes, last: dict[str, int]) -> None:
        name, number = _read(value)
        where = f"offset {offset} of partition {partition}"
        sent = self._found.get(name)
        if (
            sent is None
            or not 0 <= number < len(sent)
            or value != value_of(name, number)
            or key != key_of(name, number)
        ):
            self._wrong.append(f"{value[:30]!r} at {where} was never sent")
            return
        if sent[number] != UNKNOWN:
            self._wrong.append(f"{name}: number {number} is there again at {where}")
            return
        if number <= last[name]:
            self._wrong.append(f"{name}: number {number} at {where} follows {last[name]}")
        last[name] = max(number, last[name])
        sent[number] = place_of(partition, offset)

    def problems(self) -> list[str]:
        """When all partitions were read. None is the aim; the first of each sender are shown."""
        wrong = self._wrong[: SHOWN_MAX * 10]
        for name, places in self._places.items():
            if places != self._found[name]:
                pairs = zip(places, self._found[name], strict=True)
                lost = [number for number, (told, found) in enumerate(pairs) if _is_lost(told, found)]
                first = [f"{number} ({_where(places[number])})" for number in lost[:SHOWN_MAX]]
                if lost:
                    wrong.append(f"{name}: {len(lost)} records are not where they were acknowledged: {first}")
        return wrong


def _is_lost(told: int, found: int) -> bool:
    return found == UNKNOWN if told == SOMEWHERE else told not in (UNKNOWN, found)


def _read(value: bytes) -> tuple[str, int]:
    name, _, rest = value.partition(b":")
    number = rest.partition(b":")[0]
    return name.decode("ascii", "replace"), int(number) if number.isdigit() else UNKNOWN


def _where(place: int) -> str:
    if place == SOMEWHERE:
        return "somewhere"
    return f"partition {place >> 48}, offset {place & (1 << 48) - 1}"
