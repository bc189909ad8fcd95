"""What a verifiable client tells: one line of JSON for each event."""

import json
import sys
from typing import Any, Final

from moldau.cli.output import named_content
from moldau.runtime import RealClock

STARTED: Final = "startup_complete"
ENDED: Final = "shutdown_complete"


class EventLines:
    """Writes to standard output. Each line is flushed: the reader may be waiting for it."""

    def __init__(self) -> None:
        self._clock = RealClock()

    def tell(self, name: str, **fields: Any) -> None:
        line = json.dumps({"timestamp": self._clock.now_ms(), "name": name, **fields}, ensure_ascii=False)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def content(name: str, data: bytes | None) -> dict[str, Any]:
    """A key or value of a record, under its name, or under `name_base64` if it is not UTF-8."""
    return dict([named_content(name, data)])
