"""How a cluster is, from what its brokers say, as data and as tables."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from moldau.cli.cluster.replication_factors import below_their_setting
from moldau.cli.output import print_json, print_table
from moldau.client.administration.admin import ClusterDescription, EligibleLeaders
from moldau.client.cluster_view import PartitionView, TopicView
from moldau.names import TopicPartition, counted

MIN_IN_SYNC = "min.insync.replicas"
NOBODY = EligibleLeaders((), ())


def sick_topics(topics: Mapping[str, TopicView]) -> list[str]:
    """The topics with a partition that has no leader, or replicas that are not in sync."""
    return [name for name, topic in topics.items() if any(map(_is_sick, topic.partitions.values()))]


def _is_sick(part: PartitionView) -> bool:
    return part.leader < 0 or len(part.isr) < len(part.replicas)


def status_of(
    cluster: ClusterDescription,
    topics: Mapping[str, TopicView],
    settings: Mapping[str, str | None],
    min_in_sync: Mapping[str, int],
    eligible: Mapping[TopicPartition, EligibleLeaders],
) -> dict[str, Any]:
    """What `--json` prints. `settings` are those of a broker, empty if internal topics need none. `min_in_sync` has the
    `min.insync.replicas` of topics that are not well, and `eligible` who may lead their partitions without being in
    sync; None is printed where they are not known."""
    parts = {TopicPartition(name, n): part for name, topic in topics.items() for n, part in topic.partitions.items()}
    leads = Counter(part.leader for part in parts.values())
    has = Counter(broker for part in parts.values() for broker in part.replicas)
    unhealthy: list[dict[str, Any]] = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "leader": part.leader if part.leader >= 0 else None,
            "leader_epoch": part.leader_epoch,
            "replicas": list(part.replicas),
            "in_sync": list(part.isr),
            "min_in_sync": min_in_sync.get(tp.topic),
            # As brokers do: a partition cannot have more in sync than it has replicas.
            "below_min_in_sync": len(part.isr) < min(min_in_sync.get(tp.topic, 0), len(part.replicas)),
            "eligible": list(eligible.get(tp, NOBODY).eligible),
            "last_known_eligible": list(eligible.get(tp, NOBODY).last_known),
        }
        for tp, part in sorted(parts.items())
        if _is_sick(part)
    ]
    needed = Counter(
        broker for one in unhealthy if one["leader"] is None for broker in one["eligible"] or one["in_sync"]
    )
    return {
        "cluster_id": cluster.cluster_id,
        "controller": cluster.controller_id if cluster.controller_id >= 0 else None,
        "brokers": [
            {
                "broker": broker,
                "address": str(address),
                "rack": cluster.racks.get(broker),
                "leads": leads[broker],
                "replicas": has[broker],
            }
            for broker, address in cluster.brokers.items()
        ],
        "away": [
            {"broker": broker, "address": str(address), "needed_by": needed[broker]}
            for broker, address in cluster.fenced.items()
        ],
        "topics": len(topics),
        "partitions": len(parts),
        "without_leader": sum(part.leader < 0 for part in parts.values()),
        "under_replicated": sum(len(part.isr) < len(part.replicas) for part in parts.values()),
        "below_min_in_sync": sum(bool(one["below_min_in_sync"]) for one in unhealthy),
        "unhealthy": unhealthy,
        "too_few_replicas": below_their_setting(topics, settings, len(cluster.brokers)),
    }


def without_leader(count: int) -> str:
    """The clause that says for how many partitions a broker that is away is needed."""
    return f"{counted(count, 'partition')} without a leader {'needs' if count == 1 else 'need'} it"


def is_well(status: Mapping[str, Any], brokers: int | None = None) -> bool:
    """Whether this many brokers are up (None: all that the cluster knows), there is a controller, and every partition
    has a leader and all its replicas in sync."""
    all_up = not status["away"] if brokers is None else len(status["brokers"]) >= brokers
    return all_up and status["controller"] is not None and not status["unhealthy"]


def print_status(status: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(status)
        return
    controller = "no controller" if status["controller"] is None else f"controller {status['controller']}"
    print(f"cluster {status['cluster_id'] or '-'}  {counted(len(status['brokers']), 'broker')}  {controller}")
    rows = []
    for one in status["brokers"]:
        mark = "*" if one["broker"] == status["controller"] else ""
        rows.append([f"{one['broker']}{mark}", one["address"], one["rack"], one["leads"], one["replicas"]])
    print_table(["BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS"], rows)
    for one in status["away"]:
        needed = f": start it, since {without_leader(one['needed_by'])}" if one["needed_by"] else ""
        print(
            f"broker {one['broker']} at {one['address']} is away{needed}; if it will not come back, run `moldau cluster"
            f" unregister {one['broker']}`"
        )
    what = f"{counted(status['topics'], 'topic')}, {counted(status['partitions'], 'partition')}"
    counts = [
        f"{status['without_leader']} without a leader",
        f"{status['under_replicated']} under-replicated",
        f"{status['below_min_in_sync']} below {MIN_IN_SYNC}",
    ]
    print(f"{what}: {', '.join(counts)}", flush=True)
    if status["unhealthy"]:
        bad = [
            [
                f"{one['topic']}-{one['partition']}",
                one["leader"],
                one["leader_epoch"],
                one["replicas"],
                one["in_sync"],
                f"{one['min_in_sync'] or '-'}{'!' if one['below_min_in_sync'] else ''}",
                one["eligible"] or None,
            ]
            for one in status["unhealthy"]
        ]
        print_table(["PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN SYNC", "MIN IN SYNC", "ELIGIBLE"], bad)
    for one in status["too_few_replicas"]:
        has, wanted = counted(one["replication_factor"], "replica"), one["wanted"]
        print(f"{one['topic']} has {has}, and should have {wanted}: {one['command']}", flush=True)
