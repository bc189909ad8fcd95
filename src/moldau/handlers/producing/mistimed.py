"""What the log says of records that are refused for their timestamps (INVALID_TIMESTAMP). Pure.

A broker whose clock is wrong refuses what right clients send, so the line says how far the timestamps are from its
clock, and what that clock says. If clients of several hosts are off in the same direction, it is probably the broker.
"""

from datetime import UTC, datetime
from typing import Final

from moldau.names import TopicPartition

WINDOW_S: Final = 30.0
"""How long a host counts after its last refusal; lines are as far apart."""
HOSTS_MAX: Final = 100
_DAYS_FROM_H: Final = 48


class Mistimed:
    """The hosts whose records were refused lately, for being ahead of this broker's clock, and for being behind it."""

    def __init__(self) -> None:
        self._seen: dict[bool, dict[str, float]] = {True: {}, False: {}}
        """By direction (ahead or not), when each host was refused last, in that order."""

    def hosts(self, host: str, is_ahead: bool, now_s: float) -> int:
        """Note a refusal, at `now_s` of a clock that never jumps. Returns how many hosts had one in that direction
        within `WINDOW_S`, `HOSTS_MAX` at most."""
        seen = self._seen[is_ahead]
        seen.pop(host, None)
        seen[host] = now_s
        while len(seen) > HOSTS_MAX or next(iter(seen.values())) < now_s - WINDOW_S:
            del seen[next(iter(seen))]
        return len(seen)


def line_of(client_id: str | None, host: str, tp: TopicPartition, timestamp_ms: int, now_ms: int, hosts: int) -> str:
    """`timestamp_ms` is the refused one that is furthest from this broker's clock `now_ms`; `hosts` is as in
    `Mistimed.hosts`."""
    is_ahead = timestamp_ms > now_ms
    if hosts > 1:
        why = f"Records of {hosts} hosts were refused in this way within 30 s: probably this broker's clock is wrong"
    elif is_ahead:
        why = "One of the two clocks is wrong"
    else:
        why = "They are older than message.timestamp.before.max.ms allows, or one of the two clocks is wrong"
    clock = datetime.fromtimestamp(now_ms // 1000, UTC)
    return (
        f"records of client {client_id} at {host} for {tp} are refused: their timestamps are "
        f"{span(abs(timestamp_ms - now_ms))} {'ahead of' if is_ahead else 'behind'} this broker's clock, which says "
        f"{clock:%Y-%m-%d %H:%M:%S} UTC. {why}"
    )


def span(ms: int) -> str:
    """A span of time, rounded down to seconds, minutes or days."""
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= _DAYS_FROM_H:
        return f"{hours // 24} days"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
