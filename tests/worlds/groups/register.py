"""One committed offset as a register that many write and read at the same time: what a reader may be told.

A write takes effect once, at some time between when it was sent and when it was acknowledged; one that was neither
acknowledged nor refused may take effect at any time, or never. So a reader may be told a value unless it was certainly
replaced before the reader asked. Writing None deletes. An offset may also expire: by itself, its retention after it
was committed and not before.
"""

from dataclasses import dataclass
from math import inf

KEPT_MAX = 48
SLOWEST_READ_S = 120.0


@dataclass(eq=False)
class Write:
    value: int | None
    sent_s: float
    done_s: float = inf
    """By when it certainly had taken effect."""


class OffsetRegister:
    def __init__(self, retention_s: float = inf):
        self._retention_s = retention_s
        self._writes: list[Write] = [Write(None, -inf, -inf)]

    def write(self, value: int | None, now_s: float) -> Write:
        write = Write(value, now_s)
        self._writes.append(write)
        return write

    def taken(self, write: Write, now_s: float) -> None:
        write.done_s = min(write.done_s, now_s)
        if len(self._writes) > KEPT_MAX:
            self._forget(now_s - SLOWEST_READ_S)

    def refused(self, write: Write) -> None:
        if write in self._writes:
            self._writes.remove(write)

    def read(self, value: int | None, sent_s: float, now_s: float) -> str | None:
        """What is wrong with reading that, None if nothing is."""
        asked = [write for write in self._writes if write.value == value]
        found = [write for write in asked if self._may_stand(write, sent_s)]
        if found:
            if len(found) == 1:
                found[0].done_s = min(found[0].done_s, now_s)
            return None
        if value is None and not self._must_be_there(sent_s, now_s):
            self._writes.append(Write(None, sent_s, now_s))
            return None
        if not asked:
            return f"is {value}, which nobody committed"
        newer = [write.value for write in self._writes if asked[-1].done_s < write.sent_s and write.done_s < sent_s]
        return f"is {value}, though {newer} was acknowledged after that"

    def _may_stand(self, write: Write, sent_s: float) -> bool:
        """Whether no other write certainly came after this one, and before the reader asked."""
        return not any(
            write.done_s < other.sent_s and other.done_s < sent_s for other in self._writes if other is not write
        )

    def _must_be_there(self, sent_s: float, now_s: float) -> bool:
        """Whether an offset that is certainly committed cannot have expired yet."""
        return any(
            write.value is not None and write.done_s < sent_s and now_s - write.sent_s < self._retention_s
            for write in self._writes
            if self._may_stand(write, sent_s)
        )

    def _forget(self, before_s: float) -> None:
        """Leave out what nobody can be told any more."""
        self._writes = [write for write in self._writes if self._may_stand(write, before_s)]
