"""Runs the script by hand and shows what differs from the recordings of Apache Kafka.

Without an option our broker is asked, in virtual time: seconds, and no JVM. `--process`: our broker as a user starts
it. `--referee`: a live Kafka of this version, which answers what was recorded, or the exit code is 1; with `--write` it
is recorded anew. Both need minutes.
"""

import argparse
import sys
import time

from tests.differential import recording
from tests.differential.accepted import ACCEPTED
from tests.differential.comparing import show, weigh
from tests.differential.digests import digests
from tests.differential.refereeing import record, referee, where_uncertain
from tests.differential.running import Run, confirmed, judged, place_of, play_in_virtual_time, play_to_process
from tests.differential.script import steps_of
from tests.differential.steps import SCRIPT


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--process", action="store_true", help="ask our broker as a process")
    parser.add_argument("--referee", metavar="VERSION", choices=ACCEPTED, help="ask a live Kafka")
    parser.add_argument("--write", action="store_true", help="record what the live Kafka says")
    parser.add_argument("--all", action="store_true", help="show every step, and accepted differences")
    parser.add_argument("--short", action="store_true", help="one line for each difference")
    asked = parser.parse_args()
    began = time.monotonic()
    try:
        if asked.write:
            return write(asked.referee)
        return ask_kafka(asked.referee, asked) if asked.referee else ask_ours(asked)
    finally:
        print(f"{time.monotonic() - began:.1f} s")


def write(version: str) -> int:
    made = record(version)
    path = recording.write(made)
    for name in where_uncertain(made):
        print(f"two plays differ: {name}: {made.outcomes[name].tree}")
    print(f"{path.name}: {len(made.outcomes)} steps, {path.stat().st_size} bytes, {made.header['uncertain']} uncertain")
    return 0


def ask_kafka(version: str, asked: argparse.Namespace) -> int:
    runs = referee(version)
    stale = stale_steps(runs[-1])
    sure = confirmed(runs)
    shown = [difference for difference in runs[-1].rest if place_of(difference) in sure]
    tell(runs[-1], [str(difference) for difference in shown], asked)
    return 1 if shown or stale else 0


def ask_ours(asked: argparse.Namespace) -> int:
    outcomes = (play_to_process if asked.process else play_in_virtual_time)(SCRIPT)
    wrong = False
    for version in ACCEPTED:
        run = judged(recording.read(version), SCRIPT, outcomes)
        rest, unused = weigh(run.differences, run.accepted)
        tell(run, [str(difference) for difference in rest], asked)
        for one in unused:
            print(f"accepted, but did not come up: {one}")
        wrong = bool(rest or unused or stale_steps(run)) or wrong
    return 1 if wrong else 0


def stale_steps(run: Run) -> list[str]:
    known = run.recording
    said = recording.changed(steps_of(known.version, SCRIPT), digests(known.saved), known)
    print(*said, sep="\n", end="\n" if said else "")
    return said


def tell(run: Run, wanted: list[str], asked: argparse.Namespace) -> None:
    there = run.recording.outcomes
    for step, outcome, found in zip(run.steps, run.outcomes, run.found, strict=True):
        shown = [difference for difference in found if asked.all or str(difference) in wanted]
        if asked.short:
            print(*shown, sep="\n", end="\n" if shown else "")
        elif (shown or asked.all) and step.name in there:
            print(show(step, there[step.name], outcome, shown))
    print(f"Kafka {run.recording.version}: {len(run.steps)} steps, {len(wanted)} differences")


if __name__ == "__main__":
    sys.exit(main())
