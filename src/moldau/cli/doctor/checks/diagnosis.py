"""What a doctor says: how bad it is, one sentence of what is wrong, one of what to do."""

import enum
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

SHOWN_MAX: Final = 3


class Severity(enum.StrEnum):
    """ERROR: something does not work, or records are in danger. WARNING: something will go wrong, or goes badly. NOTE:
    worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Diagnosis(NamedTuple):
    """`area` is the part of the examination that found it: configuration, certificates, disk, clock, descriptors,
    addresses, zookeeper, replicas or folders."""

    severity: Severity
    area: str
    problem: str
    advice: str


def sorted_by_severity(found: Iterable[Diagnosis]) -> list[Diagnosis]:
    """The worst first; each once, and otherwise in the order in which they were found."""
    order = list(Severity)
    return sorted(dict.fromkeys(found), key=lambda one: order.index(one.severity))


def has_errors(found: Iterable[Diagnosis]) -> bool:
    return any(one.severity is Severity.ERROR for one in found)


def sentence(text: str) -> str:
    """The text of an error as a sentence. The name of a setting stays as it is."""
    is_name = "." in text.partition(" ")[0]
    return (text[:1] if is_name else text[:1].upper()) + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def some_of(names: Sequence[str]) -> str:
    """The first names, and how many there are besides."""
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(names[:SHOWN_MAX]) + more
