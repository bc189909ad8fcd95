"""A digest of each step of the script: of the bytes it sends and of how it is played.

Some bytes depend on the time at which the script is loaded, on values that a broker chose, and on compressors. So the
digests are made by a process of its own, in which the time stands still, nothing is compressed, and variables have the
values of the recording. Kinds of values in which a recording and our broker differ would be seen by the comparison.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tests.differential import batches
from tests.differential.playing import frame_of
from tests.differential.script import Step

STANDING_MS = 1_800_000_000_000
DAY_MS = 86_400_000
UNKNOWN = "unknown"


def digests(saved: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The digest of every step, by name; `UNKNOWN` for one that uses a variable that was not saved. `saved` as in a
    recording."""
    command = [sys.executable, "-m", "tests.differential.digests"]
    done = subprocess.run(command, input=json.dumps(saved), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def digest_of(one: Step, variables: Mapping[str, Any]) -> str:
    """The digest of one step as things are in this process."""
    sent = b"" if one.collects else frame_of(one, 0, variables)
    played = (one.api.name, one.version, one.connection, one.client_id, one.later, one.collects, one.read_as)
    waits = (one.wait_s, one.patient, one.until is not None, sorted(one.save.items()), one.since)
    return hashlib.sha256(repr((played, waits, sent)).encode()).hexdigest()[:12]


def _with_time_standing() -> dict[str, str]:
    batches.NOW, batches.T0 = STANDING_MS, STANDING_MS - DAY_MS
    batches.compress = lambda codec, data: data
    from tests.differential.recording import decode
    from tests.differential.steps import SCRIPT

    saved = json.load(sys.stdin)
    variables: dict[str, Any] = {}
    found = {}
    for one in SCRIPT:
        try:
            found[one.name] = digest_of(one, variables)
        except KeyError:
            found[one.name] = UNKNOWN
        variables |= {name: decode(value) for name, value in saved.get(one.name, {}).items()}
    return found


if __name__ == "__main__":
    json.dump(_with_time_standing(), sys.stdout)
