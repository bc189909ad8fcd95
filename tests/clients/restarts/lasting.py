"""What every program of this folder does: `PROGRAM BOOTSTRAP TOPIC GROUP [GROUP PROTOCOL]` sends the numbers from 0 on,
number n into partition n % 6, and reads them in a group.

It prints `acked N` for a number the broker has acknowledged, `took N` for one it has read, and `failed N REASON` for
one its library has given up. When its input is closed it stops sending, waits for every acknowledgement, reads until it
has taken everything acknowledged, leaves the group and ends with code 0.

It is imported by programs in other projects' environments, so it knows nothing of ours.
"""

import sys
import threading
from collections.abc import Callable

PARTITIONS = 6
PAUSE_S = 0.04
BOOTSTRAP, TOPIC, GROUP = sys.argv[1:4]
PROTOCOL = sys.argv[4] if len(sys.argv) > 4 else "classic"


class Notes:
    """Thread-safe: libraries call back in threads of their own."""

    def __init__(self) -> None:
        self.acked: set[int] = set()
        self.took: set[int] = set()
        self.sent = 0
        self.failed = 0
        self.ends = threading.Event()
        """Set when the input has been closed."""
        self._lock = threading.Lock()
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _wait_for_end(self) -> None:
        sys.stdin.read()
        self.ends.set()

    def told(self, number: int, error: object = None) -> None:
        """The library has said what became of a number."""
        with self._lock:
            if error:
                self.failed += 1
                self._say(f"failed {number} {error!r}")
            else:
                self.acked.add(number)
                self._say(f"acked {number}")

    def read(self, values: list[bytes]) -> None:
        with self._lock:
            for number in map(int, values):
                self.took.add(number)
                self._say(f"took {number}")

    def _say(self, line: str) -> None:
        sys.stdout.write(" ".join(line.split()) + "\n")
        sys.stdout.flush()

    @property
    def all_answered(self) -> bool:
        return self.sent == len(self.acked) + self.failed

    @property
    def complete(self) -> bool:
        """Whether everything that was ever sent is answered, and everything acknowledged taken."""
        return self.ends.is_set() and self.all_answered and self.acked <= self.took


def run(send: Callable[[int], None], wake: Callable[[], None], poll: Callable[[], list[bytes]]) -> None:
    """Send in a thread of its own and read in this one. `send` sends a number without waiting; `wake` lets the library
    call back; `poll` returns the values that have come within a short time."""

    def produce() -> None:
        while not notes.ends.wait(PAUSE_S):
            number, notes.sent = notes.sent, notes.sent + 1
            send(number)
            wake()
        while not notes.all_answered:
            wake()
            pause.wait(PAUSE_S)

    pause = threading.Event()
    producing = threading.Thread(target=produce)
    producing.start()
    while not notes.complete:
        notes.read(poll())
    producing.join()


notes = Notes()
