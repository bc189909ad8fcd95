"""Diagnoses of brokers and replicas, by what `moldau cluster status` says of a cluster."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from moldau.cli.cluster.status import without_leader
from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity, some_of
from moldau.names import counted

AREA: Final = "replicas"


def of_replicas(status: Mapping[str, Any], moving: int = 0, single: Collection[str] = ()) -> list[Diagnosis]:
    """`status`: see `status_of`. `moving`: partitions that are being reassigned. `single`: topics with one replica."""
    found = []
    if status["controller"] is None:
        problem = "The cluster has no controller, so nothing can be created or changed, and no dead broker is replaced."
        found.append(Diagnosis(Severity.ERROR, AREA, problem, "Look at ZooKeeper, and in the logs of the brokers."))
    for one in status["away"]:
        why = f", and {without_leader(one['needed_by'])}" if one["needed_by"] else ""
        problem = f"Broker {one['broker']}, which was at {one['address']}, is away{why}."
        advice = f"Start it; if it will not come back, replace it and run `moldau cluster unregister {one['broker']}`."
        found.append(Diagnosis(Severity.WARNING, AREA, problem, advice))
    sick = status["unhealthy"]
    without = [one for one in sick if one["leader"] is None]
    if without:
        problem = (
            f"{counted(len(without), 'partition')} cannot be read or written, without a leader: {_named(without)}."
        )
        needed = sorted({broker for one in without for broker in one["eligible"] or one["in_sync"] or one["replicas"]})
        advice = f"Start {_brokers(needed)}; `moldau cluster elect-leaders --unclean` gives up what only they have."
        found.append(Diagnosis(Severity.ERROR, AREA, problem, advice))
    below = [one for one in sick if one["below_min_in_sync"] and one["leader"] is not None]
    if below:
        problem = (
            f"{counted(len(below), 'partition')} cannot be written with acks=all, below min.insync.replicas:"
            f" {_named(below)}."
        )
        found.append(Diagnosis(Severity.ERROR, AREA, problem, _start(below, status)))
    under = [one for one in sick if one["leader"] is not None and not one["below_min_in_sync"]]
    if under:
        problem = f"{counted(len(under), 'partition')} has replicas that are not in sync: {_named(under)}."
        if len(under) > 1:
            problem = problem.replace(" has ", " have ", 1)
        found.append(Diagnosis(Severity.WARNING, AREA, problem, _start(under, status)))
    for topic in status["too_few_replicas"]:
        problem = (
            f"The internal topic {topic['topic']} has {counted(topic['replication_factor'], 'replica')}, and should"
            f" have {topic['wanted']}."
        )
        found.append(Diagnosis(Severity.WARNING, AREA, problem, f"Run `{topic['command']}`."))
    if single and len(status["brokers"]) > 1:
        problem = (
            f"{counted(len(single), 'topic')} with one replica cannot be used while a broker is away:"
            f" {some_of(sorted(single))}."
        )
        advice = "Add replicas with `moldau topics alter TOPIC --replication-factor 3`."
        found.append(Diagnosis(Severity.NOTE, AREA, problem, advice))
    if moving:
        problem = f"{counted(moving, 'partition')} under reassignment."
        found.append(Diagnosis(Severity.NOTE, AREA, problem, "`moldau cluster status` shows them; wait for the end."))
    return found


def _lacking(partitions: Sequence[Mapping[str, Any]]) -> list[int]:
    return sorted({broker for one in partitions for broker in one["replicas"] if broker not in one["in_sync"]})


def _start(partitions: Sequence[Mapping[str, Any]], status: Mapping[str, Any]) -> str:
    """What to do about replicas that are not in sync: of brokers that are away, and of those that run."""
    lacking, run = _lacking(partitions), {one["broker"] for one in status["brokers"]}
    away, behind = [one for one in lacking if one not in run], [one for one in lacking if one in run]
    advice = [f"Start {_brokers(away)}"] if away else []
    if behind:
        have = "has" if len(behind) == 1 else "have"
        advice.append(f"wait until {_brokers(behind)} {have} caught up, or look in the log there why not")
    text = "; ".join(advice)
    return f"{text[:1].upper()}{text[1:]}."


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {', '.join(map(str, ids))}"


def _named(partitions: Sequence[Mapping[str, Any]]) -> str:
    return some_of([f"{one['topic']}-{one['partition']}" for one in partitions])
