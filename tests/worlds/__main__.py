"""`python -m tests.worlds SEED [COUNT]`: live through the worlds of these seeds and print the digest of each; the exit
code is 1 if one failed.

A world has a producer and a reader; with `--groups` it has consumer groups, with `--transactions` transactions, with
`--replicas` three brokers, with `--replicated-groups` or
`--replicated-transactions` both.
`--minutes` goes on from SEED for that time.
"""

import argparse
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import count, islice
from multiprocessing import get_context
from typing import Any

from tests.worlds.scenarios import live

AT_A_TIME = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.worlds", description="Replay simulated seeds.")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=1)
    parser.add_argument("--power-loss", action="store_true", help="the machine dies with the broker")
    parser.add_argument("--groups", dest="kind", action="store_const", const="groups", default="")
    parser.add_argument("--transactions", dest="kind", action="store_const", const="transactions")
    parser.add_argument("--replicas", dest="kind", action="store_const", const="replicas")
    for both in ("replicated-groups", "replicated-transactions"):
        parser.add_argument(f"--{both}", dest="kind", action="store_const", const=both)
    parser.add_argument("--minutes", type=float, help="seed after seed for this time")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the seeds")
    asked = parser.parse_args()
    seeds = count(asked.seed) if asked.minutes is not None else iter(range(asked.seed, asked.seed + asked.count))
    until = time.monotonic() + 60 * asked.minutes if asked.minutes is not None else None
    failed = 0
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        while (lot := list(islice(seeds, AT_A_TIME * asked.jobs))) and (until is None or time.monotonic() < until):
            failed += _live_all(pool, lot, asked)
    return 1 if failed else 0


def _live_all(pool: Executor, seeds: list[int], asked: argparse.Namespace) -> int:
    """Returns the number of seeds that failed."""
    failed = 0
    options = f" --{asked.kind}" * bool(asked.kind) + " --power-loss" * asked.power_loss
    both: list[list[Any]] = [[asked.kind] * len(seeds), [asked.power_loss] * len(seeds)]
    for lived in pool.map(live, seeds, *both, chunksize=5):
        if lived.failure is None:
            print(f"seed {lived.seed}: {lived.line}")
        else:
            failed += 1
            print(f"seed {lived.seed} FAILED: {lived.failure}")
            print(f"    again: python -m tests.worlds {lived.seed}{options}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
