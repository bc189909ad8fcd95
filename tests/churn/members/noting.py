"""What every member in Python has: what it was told, a file for its notes, and the wish that it leave.

A note is one line, written in one go before the next poll, so that SIGKILL takes away none of what was processed:
`[milliseconds, what, names]`; `took` names records as `[partition, offset]`, `late` the milliseconds for which the
machine kept a thread waiting that only waits, the others partitions. Closing the standard input asks the member to
leave; so does the death of whoever started it.
"""

import json
import os
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

COMMIT_SECONDS, PULSE_SECONDS, LATE_SECONDS_MIN = 0.5, 0.1, 0.2
AGAIN_SECONDS = 0.5
RECONNECT_MS_MAX = 500

asked = SimpleNamespace(**json.loads(sys.argv[1]))
leaves = threading.Event()
_notes = os.open(asked.notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def note(what: str, names: list[Any]) -> None:
    os.write(_notes, json.dumps([time.time_ns() // 1_000_000, what, names]).encode() + b"\n")


def complain(what: object) -> None:
    """For whoever looks why something did not hold; a commit that is refused is no failure."""
    print(f"{time.time():.3f} {type(what).__name__}: {what}", file=sys.stderr, flush=True)


def _listen() -> None:
    sys.stdin.read()
    leaves.set()


def _pulse() -> None:
    while True:
        before = time.monotonic()
        time.sleep(PULSE_SECONDS)
        late = time.monotonic() - before - PULSE_SECONDS
        if late > LATE_SECONDS_MIN:
            note("late", [round(late * 1000)])


threading.Thread(target=_listen, daemon=True).start()
threading.Thread(target=_pulse, daemon=True).start()
