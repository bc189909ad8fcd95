"""What other programs said to questions, recorded once: they are asked again only by who has them, and wants to.

    with refereed.answers(Path(__file__).parent / "recordings" / "assignors.jsonl.xz") as known:
        known.to("assign range t=./. a,-,0001", lambda: java.ask("assign", ...))

`MOLDAU_REFEREE=live` asks the program, whose answer must be the recorded one; so does the long tier. With `write` its
answers are recorded beside those to other questions. `rewrite` also drops what was not asked, unless a test failed or
was deselected: then nobody knows whether it would have been. Otherwise the recording answers, and a question that is
not in it fails: what is asked depends on what our code does, so other bytes of ours are another question. `make
referee` sets it.
"""

import datetime
import hashlib
import json
import lzma
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import eq
from pathlib import Path
from typing import Any

from harness import apache_kafka, tiers

MODES = ("recorded", "live", "write", "rewrite")
MODE = os.environ.get("MOLDAU_REFEREE") or ("live" if tiers.LONG else "recorded")
SHOWN = 300
RECORDED_VERSION = "4.3.1"
"""Of Apache Kafka. Any other must say the same."""
COMMAND = f"make referee VERSION={RECORDED_VERSION} WRITE=1"

missing: list[str] = []
"""Why this run may not have asked everything, as `conftest.py` finds out."""


def writes() -> bool:
    return MODE in ("write", "rewrite") and apache_kafka.VERSION == RECORDED_VERSION


def asks() -> bool:
    """Whether the program itself is asked."""
    return MODE != "recorded"


class Answers:
    """Answers by the digest of their question, in one file behind a header."""

    def __init__(self, path: Path):
        self.path = path
        self.known: dict[str, Any] = {}
        self.asked: dict[str, Any] = {}
        if path.exists():
            _, *lines = lzma.decompress(path.read_bytes()).splitlines()
            self.known = dict(map(json.loads, lines))

    def to(self, question: str | bytes, ask: Callable[[], Any], alike: Callable[[Any, Any], bool] = eq) -> Any:
        """The answer, as JSON holds it; `ask` asks the program. `alike` says whether one answer may be another."""
        data = question if isinstance(question, bytes) else question.encode()
        key = hashlib.sha256(data).hexdigest()[:16]
        if not asks():
            assert key in self.known, f"{self.path.name} has no answer to this, so it is not known. Run: {COMMAND}"
            return self.known[key]
        said = json.loads(json.dumps(ask()))
        if not writes() and key in self.known:
            assert alike(said, self.known[key]), difference(repr(said), repr(self.known[key]))
        self.asked[key] = said
        return said

    def write(self) -> None:
        """Write what was asked, and what else is known unless all of it would have been asked in this run."""
        kept = {} if MODE == "rewrite" and not missing else self.known
        header = {"kafka": apache_kafka.VERSION, "recorded": datetime.date.today().isoformat(), "command": COMMAND}
        lines = [header, *{**kept, **self.asked}.items()]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def difference(said: str, known: str) -> str:
    """Both from a little before where they part."""
    same = next((at for at, pair in enumerate(zip(said, known, strict=False)) if pair[0] != pair[1]), 0)
    at = max(0, same - SHOWN // 2)
    return f"said now is ...{said[at : at + SHOWN]}..., recorded is ...{known[at : at + SHOWN]}..."


@contextmanager
def answers(path: Path) -> Iterator[Answers]:
    """The recording at `path`; written at the end, if that is asked for. One process at a time can write."""
    found = Answers(path)
    yield found
    if writes() and found.asked:
        found.write()
