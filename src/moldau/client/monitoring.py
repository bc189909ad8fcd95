"""Monitoring events: what a producer reports of the records that brokers have acknowledged (docs/audit.md).

An event covers the records of one topic and one window of event time since the producer's previous event. Events of one
instance of a producer are numbered from 0, so a reader counts an event once and notices a missing one. The last event
has no topic and says that the producer was closed.
"""

import json
from dataclasses import dataclass
from typing import Any

from moldau.errors import MoldauError
from moldau.records.columns import DELAY_BUCKETS
from moldau.records.digests import MASK, Digest

FORMAT = 1


class InvalidEvent(MoldauError):
    """A record of the audit topic is not a monitoring event."""


@dataclass(frozen=True)
class MonitoringEvent:
    """One report. Times are in ms since 1970; `instance` is new whenever a producer starts."""

    instance: str
    sequence: int
    server: str
    producer: str
    topic: str
    window_start_ms: int
    window_ms: int
    digest: Digest
    sent_ms: int
    closed: bool = False


def to_json(event: MonitoringEvent) -> bytes:
    digest = event.digest
    tree = {
        "format": FORMAT,
        "instance": event.instance,
        "sequence": event.sequence,
        "server": event.server,
        "producer": event.producer,
        "topic": event.topic,
        "window_start_ms": event.window_start_ms,
        "window_ms": event.window_ms,
        "count": digest.records,
        "hash_sum": f"{digest.hash_sum:016x}",
        "late": digest.late,
        "delay_ms_max": digest.delay_ms_max,
        "delays": list(digest.delays),
        "sent_ms": event.sent_ms,
        "closed": event.closed,
    }
    return json.dumps(tree).encode()


def from_json(data: bytes) -> MonitoringEvent:
    """Parse an event. Raises `InvalidEvent`, a sentence, for anything else."""
    try:
        tree: Any = json.loads(data)
        if tree["format"] != FORMAT:
            raise InvalidEvent(f"it has format {tree['format']!r}; this version reads format {FORMAT}")
        delays = tuple(_number(count) for count in tree["delays"])
        hash_sum = int(tree["hash_sum"], 16)
        if len(delays) > DELAY_BUCKETS or not 0 <= hash_sum <= MASK:
            raise ValueError
        digest = Digest(_number(tree["count"]), hash_sum, _number(tree["late"]), _number(tree["delay_ms_max"]), delays)
        names = [tree[name] for name in ("instance", "server", "producer", "topic")]
        if not all(isinstance(name, str) for name in names) or _number(tree["window_ms"]) < 1:
            raise ValueError
        return MonitoringEvent(
            instance=names[0],
            sequence=_number(tree["sequence"]),
            server=names[1],
            producer=names[2],
            topic=names[3],
            window_start_ms=int(tree["window_start_ms"]),
            window_ms=tree["window_ms"],
            digest=digest,
            sent_ms=int(tree["sent_ms"]),
            closed=tree["closed"] is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise InvalidEvent("it is not a monitoring event") from None


def _number(value: object) -> int:
    """A whole number that is not negative. Raises `ValueError`."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value
