"""Runs the script by hand and shows what differs; `--kafka-twice` plays it to two Kafkas, to see normalisation hold."""

import argparse
import sys
import time

from tests.differential.accepted import ACCEPTED
from tests.differential.comparing import show, weigh
from tests.differential.running import play
from tests.differential.steps import SCRIPT


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--kafka-twice", action="store_true", help="compare Kafka with itself")
    parser.add_argument("--all", action="store_true", help="show every step, and accepted differences")
    parser.add_argument("--short", action="store_true", help="one line for each difference")
    asked = parser.parse_args()
    began = time.monotonic()
    run = play(SCRIPT, asked.kafka_twice)
    rest, unused = weigh(run.differences, () if asked.kafka_twice else ACCEPTED)
    for step, theirs, ours, found in zip(run.steps, run.kafka, run.ours, run.found, strict=True):
        shown = [difference for difference in found if asked.all or difference in rest]
        if asked.short:
            print(*shown, sep="\n", end="\n" if shown else "")
        elif shown or asked.all:
            print(show(step, theirs, ours, shown))
    for one in unused:
        print(f"accepted, but did not come up: {one}")
    print(f"{len(SCRIPT)} steps, {len(rest)} differences, {time.monotonic() - began:.1f} s")
    return 1 if rest or unused else 0


if __name__ == "__main__":
    sys.exit(main())
