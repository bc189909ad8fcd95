"""Diagnoses of the ZooKeeper that has a cluster's metadata."""

from collections.abc import Collection, Sequence
from statistics import median
from typing import Final, NamedTuple

from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity

AREA: Final = "zookeeper"
ANSWER_MS_SLOW: Final = 100.0
"""The median of some reads: an election makes several of them one after the other."""
OLDEST: Final = (3, 5)
"""The first line of releases with TLS, and the last one that brokers of Kafka asked for."""


class ServerFacts(NamedTuple):
    """One server of the ensemble. `error`: why it cannot be connected to. `version`, `mode` and `latency_ms` are what
    it tells of itself, empty or -1 if it does not (`4lw.commands.whitelist`)."""

    address: str
    error: str = ""
    version: str = ""
    mode: str = ""
    latency_ms: float = -1.0


class ZooKeeperFacts(NamedTuple):
    """`error`: why no session could be opened, "" if one was. `answers_ms`: the times of some reads."""

    connect: str
    servers: Collection[ServerFacts] = ()
    error: str = ""
    answers_ms: Sequence[float] = ()
    asked_timeout_s: float = 0.0
    granted_timeout_s: float = 0.0


def of_zookeeper(facts: ZooKeeperFacts) -> list[Diagnosis]:
    found = []
    servers = list(facts.servers)
    away = [one for one in servers if one.error]
    if facts.error:
        problem = f"There is no session in ZooKeeper at {facts.connect}: {facts.error}."
        advice = "Start ZooKeeper, or correct zookeeper.connect; brokers go on, but nothing can be created or replaced."
        found.append(Diagnosis(Severity.ERROR, AREA, problem, advice))
    for one in away:
        more = "" if facts.error else f"; {(len(servers) - 1) // 2} of {len(servers)} may be away"
        problem = f"The ZooKeeper server {one.address} cannot be reached: {one.error}{more}."
        found.append(Diagnosis(Severity.WARNING, AREA, problem, "Start it, or look at the network to it."))
    if len(servers) > 1 and len(servers) % 2 == 0:
        problem = f"ZooKeeper has {len(servers)} servers, which survive no more failures than {len(servers) - 1} would."
        found.append(Diagnosis(Severity.NOTE, AREA, problem, "Use an odd number of servers."))
    for one in servers:
        if one.version and _parts(one.version) < OLDEST:
            problem = f"The ZooKeeper server {one.address} has version {one.version}, which gets no corrections."
            found.append(Diagnosis(Severity.WARNING, AREA, problem, "Install a release of ZooKeeper 3.8 or newer."))
    versions = sorted({one.version for one in servers if one.version})
    if len(versions) > 1:
        problem = f"The ZooKeeper servers have different versions: {', '.join(versions)}."
        found.append(Diagnosis(Severity.NOTE, AREA, problem, "End the upgrade that is under way."))
    if facts.answers_ms and median(facts.answers_ms) > ANSWER_MS_SLOW:
        problem = f"ZooKeeper needs {median(facts.answers_ms):.0f} ms to answer a read, so elections take long."
        advice = "Give its servers a disk of their own, more memory, and a place near the brokers."
        found.append(Diagnosis(Severity.WARNING, AREA, problem, advice))
    if 0 < facts.granted_timeout_s < facts.asked_timeout_s:
        problem = (
            f"ZooKeeper grants a session time-out of {facts.granted_timeout_s:g} s, not the"
            f" {facts.asked_timeout_s:g} s of zookeeper.session.timeout.ms."
        )
        advice = "Raise maxSessionTimeout in ZooKeeper's settings, or lower zookeeper.session.timeout.ms."
        found.append(Diagnosis(Severity.WARNING, AREA, problem, advice))
    return found


def _parts(version: str) -> tuple[int, ...]:
    numbers = version.partition("-")[0].split(".")
    return tuple(int(one) for one in numbers if one.isdecimal())
