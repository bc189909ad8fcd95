"""One run of churn on a broker of its own, and the verdict. Bounds that are times are judged by the long tier alone."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.brokers import SOURCE, Broker
from harness.tiers import LONG
from tests.churn import trace
from tests.churn.evidence import Answer, Trace, leaves
from tests.churn.groups import Group, Ran, Timing, run
from tests.churn.instances import returns
from tests.churn.judge import begun, changes, counted_again, duplicates, lost, orphans, untimed, violations
from tests.churn.kills import Kills
from tests.churn.plan import Script
from tests.churn.scripts import rows

TIMING = Timing(session_ms=8000, heartbeat_ms=1500)
"""Shorter ones make clients give up on a busy machine: librdkafka drops its connection over a heartbeat that is not
answered within its interval."""
SETTINGS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(TIMING.session_ms),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(TIMING.heartbeat_ms),
    "offsets.topic.num.partitions": "1",
}


class Report(NamedTuple):
    asked: str
    violations: list[str]
    figures: list[str]
    """A line for each group: what happened, and how close to its bounds it came."""
    changes: int
    traces: Mapping[str, Trace]

    def lines(self) -> Iterator[str]:
        yield from self.figures
        for sentence in self.violations:
            yield f"FAILED {sentence}"
        if self.violations:
            yield f"again: python -m tests.churn {self.asked} --folder /tmp/churn"


def churn(
    seed: int,
    wanted: int,
    folder: Path,
    bootstrap: str | None = None,
    kills: int = 0,
    rows: Callable[[int], list[list[Script]]] = rows,
) -> Report:
    """Runs the scripts of so many changes, and kills the broker so often meanwhile. A broker of somebody else's is
    judged only by what members processed."""
    asked = f"--seed {seed} --changes {wanted}" + (f" --kills {kills}" if kills else "")
    if bootstrap is not None:
        return _report(asked, run(rows(wanted), seed, bootstrap, folder, TIMING), {})
    broker = Broker(folder, SETTINGS, options=trace.LOGGING)
    broker.start()
    killing = Kills(broker, kills, seed)
    try:
        ran = run(rows(wanted), seed, broker.address, folder, TIMING, killing)
        broker.stop()
    finally:
        broker.kill()
    return _report(asked, ran, traces(ran, folder, killing.windows))


def traces(ran: Ran, folder: Path, kills: Sequence[tuple[int, int]]) -> dict[str, Trace]:
    """What is known of each group, by its name."""
    documents = trace.dumped(folder / "data", {**os.environ, "PYTHONPATH": str(SOURCE)})
    names = {group.script.name: group.script.name for group in ran.groups}
    written = trace.written(documents, names)
    with open(folder / "broker.log") as log:
        answers = trace.answers(log)
    known = {name: [one for one in answers.get(name, []) if one.at_ms <= ran.until_ms] for name in names}
    return {
        group.script.name: Trace(
            partitions=group.script.partitions,
            written=written.get(group.script.name, []),
            answers=known[group.script.name],
            dead_ms=_dead_ms(group, known[group.script.name], ran.until_ms),
            until_ms=ran.until_ms,
            produced=ran.produced[group.script.name],
            processed=group.processed,
            read_ms=group.read_ms,
            stalls=[*ran.stalls, *group.stalls],
            kills=kills,
        )
        for group in ran.groups
    }


def _dead_ms(group: Group, answers: Sequence[Answer], until_ms: int) -> dict[str, int]:
    """Who was killed, and who went without a word, as static members do, be it that nobody heard it."""
    heard = {answer.client for answer in answers if leaves(answer)}
    silent = {client: at_ms for client, at_ms in group.left_ms.items() if client not in heard}
    return {client: at_ms for client, at_ms in {**silent, **group.dead_ms}.items() if at_ms <= until_ms}


def _report(asked: str, ran: Ran, found: dict[str, Trace]) -> Report:
    sentences, figures = [], [f"{asked}; machine late {sum(late for _, late in ran.stalls)} ms in all"]
    if killed := next((trace.kills for trace in found.values()), ()):
        figures.append(f"the broker was killed, and away for {', '.join(f'{to - at} ms' for at, to in killed)}")
    for group in ran.groups:
        name = group.script.name
        sentences += [
            f"{client} did not end when it was asked to leave, or when another had its instance id"
            for client in group.stuck
        ]
        seen = found.get(name)
        if seen is None:
            only = Trace(group.script.partitions, [], [], produced=ran.produced[name], processed=group.processed)
            sentences += [f"{name}: {sentence}" for sentence in lost(only)]
            figures.append(f"{name:<20} {sum(ran.produced[name].values())} records, {duplicates(only)} again")
            continue
        wrong = violations(seen, *TIMING) if LONG else untimed(seen)
        sentences += [f"{name}: {sentence}" for sentence in wrong]
        sentences += [f"{name}: {sentence}" for sentence in _unseen(ran.told[name], seen)]
        figures.append(f"{name:<20} {_figures(seen)}")
    return Report(asked, sentences, figures, sum(len(changes(trace)) for trace in found.values()), found)


def _unseen(told: frozenset[str], seen: Trace) -> Iterator[str]:
    """Members that were told what they have, and of whom the trace does not know: it would be no trace."""
    for client in sorted(told - {answer.client for answer in seen.answers}):
        yield f"the broker's trace knows nothing of {client}"


def _figures(seen: Trace) -> str:
    longest = orphans(seen)
    errors = Counter(answer.error for answer in seen.answers)
    told = ", ".join(f"{count} {error}" for error, count in errors.most_common())
    orphan = f"not owned for {longest[0].length_ms} ms after {longest[0].since}" if longest else "always owned"
    records = f"{sum(seen.produced.values())} records, {duplicates(seen)} again"
    again = f", {counted_again(seen)} of them counted again" if seen.kills else ""
    quiet = len(returns(seen, *TIMING))
    back = f", {quiet} returns of instances at rest" if quiet else ""
    return f"{len(changes(seen))} changes, {begun(seen)} generations{again}{back}, {orphan}, {records}; answers: {told}"
