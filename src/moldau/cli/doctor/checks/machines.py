"""Diagnoses of clocks and of file descriptors."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity

CLOCK, DESCRIPTORS = "clock", "descriptors"
NEVER_BEFORE_MS: Final = 1_767_225_600_000
"""2026-01-01: this program is younger."""
DRIFT_MS_MAX: Final = 50.0
APART_MS_MAX, APART_MS_BAD = 1_000, 60_000
"""Retention, timestamps of LogAppendTime and logins by token compare the clocks of brokers and clients."""
CONNECTIONS_FEW: Final = 1_000
SHARE_IN_USE_MAX: Final = 0.8
SYNCHRONIZE: Final = "Let a service synchronize it (chrony, systemd-timesyncd), on every machine of the cluster."


class ClockFacts(NamedTuple):
    """`drift_ms`: by how much the wall clock and the monotonic one disagreed while the doctor looked. `ahead_ms`: by
    how much the clock of each broker was before ZooKeeper's when the broker registered, by broker."""

    now_ms: int
    drift_ms: float = 0.0
    ahead_ms: Mapping[int, int] = {}


def of_clocks(clock: ClockFacts) -> list[Diagnosis]:
    found = []
    if clock.now_ms < NEVER_BEFORE_MS:
        problem = "The clock of this machine is years behind."
        found.append(Diagnosis(Severity.ERROR, CLOCK, problem, SYNCHRONIZE))
    if abs(clock.drift_ms) > DRIFT_MS_MAX:
        problem = f"The clock of this machine was set by {clock.drift_ms:.0f} ms while the doctor looked at it."
        found.append(Diagnosis(Severity.WARNING, CLOCK, problem, SYNCHRONIZE))
    if len(clock.ahead_ms) > 1:
        first, last = (
            min(clock.ahead_ms, key=clock.ahead_ms.__getitem__),
            max(clock.ahead_ms, key=clock.ahead_ms.__getitem__),
        )
        apart_ms = clock.ahead_ms[last] - clock.ahead_ms[first]
        if apart_ms > APART_MS_MAX:
            severity = Severity.ERROR if apart_ms > APART_MS_BAD else Severity.WARNING
            problem = f"The clock of broker {last} was {apart_ms / 1000:.1f} s before that of broker {first}."
            found.append(Diagnosis(severity, CLOCK, problem, SYNCHRONIZE))
    return found


class DescriptorFacts(NamedTuple):
    """`limit`: how many files and sockets a process of this user may open, -1 for any number; `connections`: how many a
    broker could serve with that. `open` and `of_broker` are those of a broker that runs here, -1 if unknown."""

    limit: int
    connections: int
    of_broker: int = -1
    open: int = -1


def of_descriptors(facts: DescriptorFacts) -> list[Diagnosis]:
    raise_it = "Raise the limit (`ulimit -n`, LimitNOFILE in systemd) to 100000 or more, and restart the broker."
    found = []
    if facts.limit >= 0 and facts.connections < CONNECTIONS_FEW:
        problem = (
            f"A process here may open {facts.limit} files and sockets, with which a broker serves at most"
            f" {max(facts.connections, 0)} connections."
        )
        severity = Severity.ERROR if facts.connections < 1 else Severity.WARNING
        found.append(Diagnosis(severity, DESCRIPTORS, problem, raise_it))
    if 0 < facts.of_broker <= facts.open / SHARE_IN_USE_MAX:
        problem = f"The broker has {facts.open} of at most {facts.of_broker} files and sockets open."
        found.append(Diagnosis(Severity.WARNING, DESCRIPTORS, problem, raise_it))
    return found
