"""The figures of this package, before and after.

usage: python -m benchmarks.hostile [--before REVISION] [--only pipelining,unfinished] [--rounds 3]

With `--before`, a revision of git or the folder of a source tree, the broker of that revision is measured in turns with
today's, figure by figure. A round measures everything once; the median of all rounds is shown. A module may have
`table(figures)`, which makes a table of its own of today's figures.
"""

import argparse
import contextlib
import functools
import importlib
import pkgutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

import benchmarks.hostile
from benchmarks.broker_load import Case
from benchmarks.earlier import source_of
from benchmarks.side_by_side import ours, ratio

WIDTH = 160
"""Of the tables, in letters."""
Figures = dict[str, list[Case]]
"""By name, one for each round."""


def modules(only: Sequence[str]) -> Iterator[ModuleType]:
    """The modules of this package that have cases, and of those the ones that are asked for."""
    for found in pkgutil.iter_modules(benchmarks.hostile.__path__):
        if found.name != "__main__" and (not only or found.name in only):
            module = importlib.import_module(f"benchmarks.hostile.{found.name}")
            if hasattr(module, "cases"):
                yield module


def figures(module: ModuleType, source: Path | None, console: Console) -> Iterator[Case]:
    """Those of one module. A broker that does not survive them ends them, and says why."""
    say = functools.partial(console.print, "today:" if source is None else "before:", highlight=False, soft_wrap=True)
    try:
        for case in module.cases(functools.partial(ours, source=source)):
            say(f"{case.name}: {shown(case)}")
            yield case
    except (OSError, EOFError, AssertionError) as error:
        say(f"{module.__name__} ends early: {type(error).__name__}: {error}")


def shown(case: Case | None) -> str:
    if case is None:
        return ""
    return f"{case.value:,.0f} {case.unit}" if abs(case.value) >= 100 else f"{case.value:.3g} {case.unit}"


def in_turns(todays: Iterator[Case], earlier: Iterator[Case] | None) -> Iterator[tuple[Case | None, Case | None]]:
    """The next figure of each, until both have no more."""
    while True:
        before = next(earlier, None) if earlier is not None else None
        now = next(todays, None)
        if before is None and now is None:
            return
        yield now, before


def measured(module: ModuleType, source: Path | None, rounds: int, console: Console) -> tuple[Figures, Figures]:
    """Today's figures, and those of the earlier broker whose source is given."""
    now: Figures = {}
    before: Figures = {}
    for _ in range(rounds):
        earlier = figures(module, source, console) if source is not None else None
        for ours_now, ours_before in in_turns(figures(module, None, console), earlier):
            for found, case in ((now, ours_now), (before, ours_before)):
                if case is not None:
                    found.setdefault(case.name, []).append(case)
    return now, before


def median(cases: Sequence[Case]) -> Case:
    return cases[0]._replace(value=statistics.median(case.value for case in cases))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description="What hostile clients cost.")
    parser.add_argument("--before", metavar="REVISION", help="measure the broker of this revision, too")
    parser.add_argument("--only", default="", help="modules of this package, all of them if not given")
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args(arguments)
    console = Console()
    table = Table("case", "before", "today", "times better", title="Hostile clients")
    for column in table.columns[1:]:
        column.justify = "right"

    summaries: list[Table] = []

    with contextlib.ExitStack() as stack:
        source = stack.enter_context(source_of(asked.before)) if asked.before else None
        for module in modules([name for name in asked.only.split(",") if name]):
            todays, earlier = measured(module, source, asked.rounds, console)
            for name in {**todays, **earlier}:
                now = median(todays[name]) if name in todays else None
                before = median(earlier[name]) if name in earlier else None
                table.add_row(name, shown(before), shown(now), ratio(now, before) if now else "")
            if hasattr(module, "table"):
                summaries.append(module.table(todays))
    for summary in (table, *summaries):
        console.print(summary, width=max(console.width, WIDTH))
    return 0


if __name__ == "__main__":
    sys.exit(main())
