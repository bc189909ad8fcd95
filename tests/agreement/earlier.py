"""`python -m tests.agreement.earlier` is `python -m moldau` by a clock that goes `MOLDAU_EARLIER_MS` behind.

A folder that Kafka wrote months ago is served as on that day: nothing in it is too old yet.
"""

import os

from moldau.cli.main import main
from moldau.runtime import RealClock


def go_behind(milliseconds: int) -> None:
    now_ms = RealClock.now_ms
    RealClock.now_ms = lambda clock: now_ms(clock) - milliseconds  # type: ignore[method-assign]


if __name__ == "__main__":
    go_behind(int(os.environ["MOLDAU_EARLIER_MS"]))
    main()
