"""Churn from one seed, or fresh seeds for so long.

usage: python -m tests.churn [--seed S] [--changes N] [--kills N] [--folder F]   once; the folder keeps logs and notes
       python -m tests.churn --minutes M [--changes N] [--kills N]               fresh seeds for so long
       python -m tests.churn --bootstrap HOST:PORT                               another: only what members process
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.churn.running import Report, churn


def tell(report: Report) -> int:
    print("\n".join(report.lines()), flush=True)
    return 1 if report.violations else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.churn", description="Groups of real clients under churn.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="kept, to look into (a temporary one)")
    parser.add_argument("--minutes", type=float, help="fresh seeds for so long")
    parser.add_argument(
        "--kills", type=int, default=0, help="how often the broker is killed and started again (%(default)s)"
    )
    parser.add_argument("--bootstrap", help="a broker that somebody else runs")
    asked = parser.parse_args()
    if asked.kills and asked.bootstrap:
        parser.error("a broker that somebody else runs is not killed: leave out --kills or --bootstrap")
    until = time.monotonic() + (asked.minutes or 0) * 60
    seed, code = asked.seed, 0
    while True:
        with tempfile.TemporaryDirectory(prefix="moldau-churn-", ignore_cleanup_errors=True) as temporary:
            folder = asked.folder or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            code = tell(churn(seed, asked.changes, folder, asked.bootstrap, asked.kills))
        if code or time.monotonic() >= until:
            return code
        seed = random.SystemRandom().randrange(1 << 32)


if __name__ == "__main__":
    sys.exit(main())
