"""What a dead letter says of its failure, in its headers. Pure.

Four programs write such headers: `Consumer.process` of this package, Kafka Streams (KIP-1034), Kafka Connect (KIP-298)
and Spring for Apache Kafka, which has numbers in binary. A record that failed more than once has a header more than
once; the last one counts.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

Headers = list[tuple[str, bytes | None]]

_STREAMS: Final = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "exception": "exception",
    "message": "message",
    "stacktrace": "stacktrace",
}
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "__moldau.errors.": _STREAMS,
    "__streams.errors.": _STREAMS,
    "__connect.errors.": {
        "topic": "topic",
        "partition": "partition",
        "offset": "offset",
        "exception.class.name": "exception",
        "exception.message": "message",
        "exception.stacktrace": "stacktrace",
    },
    "kafka_dlt-": {
        "original-topic": "topic",
        "original-partition": "partition",
        "original-offset": "offset",
        "exception-fqcn": "exception",
        "exception-message": "message",
        "exception-stacktrace": "stacktrace",
    },
}
"""The prefix of a program's headers -> the rest of a name -> the field of `DeadLetter`."""
_BINARY: Final = "kafka_dlt-"
_BIG_ENDIAN: Final = {4: struct.Struct(">i"), 8: struct.Struct(">q")}


class DeadLetter(NamedTuple):
    """Where the record was before, as far as its headers tell, and why it failed. `own` are its other headers."""

    topic: str | None
    partition: int | None
    offset: int | None
    exception: str
    message: str
    stacktrace: str
    own: Headers

    @property
    def place(self) -> str:
        """`topic-partition@offset`, or what is known of it."""
        parts = [self.topic or "?"]
        parts += [] if self.partition is None else [f"-{self.partition}"]
        return "".join([*parts, *([] if self.offset is None else [f"@{self.offset}"])])


def letter_in(headers: Iterable[tuple[str, bytes | None]]) -> DeadLetter | None:
    """What the headers of a record say; None if they say nothing of a failure."""
    own: Headers = []
    found: dict[str, bytes] = {}
    numbers: dict[str, int | None] = {}
    failed = False
    for name, value in headers:
        prefix = next((one for one in _NAMES if name.startswith(one)), None)
        if prefix is None:
            own.append((name, value))
            continue
        failed = True
        field = _NAMES[prefix].get(name.removeprefix(prefix))
        if field in ("partition", "offset"):
            numbers[field] = _binary(value or b"") if prefix == _BINARY else _number(value or b"")
        elif field is not None:
            found[field] = value or b""
    if not failed:
        return None
    texts = {field: found.get(field, b"").decode(errors="replace") for field in ("exception", "message", "stacktrace")}
    topic = found["topic"].decode(errors="replace") if "topic" in found else None
    return DeadLetter(topic, numbers.get("partition"), numbers.get("offset"), **texts, own=own)


def _number(value: bytes) -> int | None:
    return int(value) if value.isdigit() and len(value) <= 19 else None


def _binary(value: bytes) -> int | None:
    layout = _BIG_ENDIAN.get(len(value))
    number = -1 if layout is None else int(layout.unpack(value)[0])
    return number if number >= 0 else None


class WantedLetters(NamedTuple):
    """Which letters are meant: those from a topic, those whose exception or message has a text; "" for all."""

    topic: str = ""
    text: str = ""

    def takes(self, letter: DeadLetter) -> bool:
        """Whether the letter is meant. The case of letters does not count."""
        about = f"{letter.exception}\n{letter.message}".casefold()
        return self.topic in ("", letter.topic) and self.text.casefold() in about
