"""Runs commands as `tools/stages.py` does, in a process of their own: whoever runs them waits for all its children."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tools.running import Outcome

ROOT = Path(__file__).parents[2]
RUN = """
import json, sys
from harness.patience import Deadline
from tools.running import Outcome, adopt_orphans, run_command
adopt_orphans()
outcome = Outcome("it")
for command in json.loads(sys.argv[1]):
    run_command(command, {}, Deadline(float(sys.argv[2])), outcome)
print()
print(json.dumps(vars(outcome)))
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def ran(*commands: list[str], seconds: float = 600) -> tuple[Outcome, str]:
    """What came of these commands, each allowed so many seconds, and what was shown."""
    arguments = [json.dumps(commands), str(seconds)]
    done = subprocess.run([*python(RUN), *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    shown, _, outcome = done.stdout.rstrip().rpartition("\n")
    told = json.loads(outcome)
    return Outcome(**{**told, "counts": Counter(told["counts"])}), shown
