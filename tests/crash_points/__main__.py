"""Crash points by the thousand, or one of them again.

usage: python -m tests.crash_points [--seed S] [--points N] [--jobs J]      so many points, from that seed on
       python -m tests.crash_points --minutes M [--jobs J]                  fresh seeds for so long
       python -m tests.crash_points --seed S --point N [--error]            one again: the power fails before call N of
                                                                            the story of seed S, or that call fails
"""

import argparse
import logging
import random
import sys
import time

from tests.crash_points import coverage
from tests.crash_points.driver import Report, replay, run_many

POINTS, SEED = 20_000, 1


def tell(report: Report, seconds: float, complete: bool) -> int:
    """Print what was covered and what did not hold; the exit code."""
    print(coverage.table(report.covered))
    print(
        f"\n{report.points:,} crash points and {report.errors:,} errors in {report.scripts} stories, {seconds:.0f} s "
        f"of {report.seconds:.0f}"
    )
    for failure in report.failures:
        print(f"\nFAILED {failure.sentence}\n    again: python -m tests.crash_points {failure.again}")
    absent = coverage.missing(report.covered) if complete else []
    for operation, call in absent:
        print(f"NOT COVERED: {call} of {operation}")
    return 1 if report.failures or absent else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash_points", description="Crash a log at every call.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--point", type=int, help="one point, again")
    parser.add_argument("--error", action="store_true", help="the call fails, the power does not")
    parser.add_argument("--minutes", type=float, help="fresh seeds for so long")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    started = time.monotonic()
    if asked.point is not None:
        return tell(replay(asked.seed, asked.point, error=asked.error), time.monotonic() - started, False)
    if asked.minutes is None:
        report = run_many(asked.seed, asked.points, asked.jobs)
        return tell(report, time.monotonic() - started, asked.points >= POINTS)
    report, until = Report(), started + asked.minutes * 60
    while time.monotonic() < until and not report.failures:
        report.add(run_many(random.SystemRandom().randrange(1 << 40), POINTS, asked.jobs, until))
    return tell(report, time.monotonic() - started, False)


if __name__ == "__main__":
    sys.exit(main())
