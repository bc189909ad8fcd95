"""Plans for more or fewer replicas of a topic, and the internal topics that have fewer than their setting asks for.
Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from moldau.client.cluster_view import TopicView
from moldau.config.internal_topics import FACTOR_SETTINGS, MIN_ISR_SETTING
from moldau.errors import ConfigError
from moldau.names import TRANSACTIONS_TOPIC, counted


def with_replicas(topic: TopicView, factor: int, racks: Mapping[int, str | None]) -> dict[int, list[int]]:
    """The replicas of the partitions that do not have `factor`, by number, the preferred leader first. Replicas stay
    where they are; new ones are on the brokers that have fewest of this topic, if possible in racks that the partition
    is not in yet. Those out of sync go first, then the last ones. The preferred leaders of partitions that grow are
    spread over the brokers. `racks` has every broker. Raises `ConfigError`."""
    if factor > len(racks):
        raise ConfigError(
            f"{topic.name} cannot have {factor} replicas: {counted(len(racks), 'broker')} of the cluster "
            f"{'is' if len(racks) == 1 else 'are'} up"
        )
    parts = {number: list(part.replicas) for number, part in sorted(topic.partitions.items())}
    has = Counter(broker for replicas in parts.values() for broker in replicas)
    leads = Counter(replicas[0] for replicas in parts.values() if len(replicas) == factor)
    known = all(rack is not None for rack in racks.values())
    plan = {}
    for number, replicas in parts.items():
        if len(replicas) == factor:
            continue
        if len(replicas) > factor:
            in_sync = topic.partitions[number].isr
            kept = sorted(replicas, key=lambda one: one not in in_sync)[:factor]
            plan[number] = [one for one in replicas if one in kept]
            continue
        chosen = list(replicas)
        while len(chosen) < factor:
            used = {racks.get(broker) for broker in chosen} if known else set()
            chosen.append(min(racks.keys() - {*chosen}, key=lambda one: (racks[one] in used, has[one], one)))
            has[chosen[-1]] += 1
        first = min(chosen, key=lambda one: leads[one])
        leads[first] += 1
        plan[number] = [first, *(one for one in chosen if one != first)]
    return plan


def below_their_setting(
    topics: Mapping[str, TopicView], settings: Mapping[str, str | None], brokers: int
) -> list[dict[str, Any]]:
    """The internal topics with fewer replicas than their setting asks for, or than this many brokers can have, and the
    command that adds replicas. `settings` are those of a broker."""
    too_few = []
    for name, setting in FACTOR_SETTINGS.items():
        topic, wanted = topics.get(name), min(int(settings.get(setting) or 1), brokers)
        if topic is None or not topic.partitions:
            continue
        has = min(len(part.replicas) for part in topic.partitions.values())
        if has < wanted:
            command = f"moldau topics alter {name} --replication-factor {wanted}"
            if name == TRANSACTIONS_TOPIC:
                command += f" --config min.insync.replicas={min(int(settings.get(MIN_ISR_SETTING) or 1), wanted)}"
            too_few.append({"topic": name, "replication_factor": has, "wanted": wanted, "command": command})
    return too_few
