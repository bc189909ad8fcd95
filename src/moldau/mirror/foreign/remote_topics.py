"""What the target lacks for a mirrored topic. Pure.

A topic is made, expanded and configured as its source, with the exceptions that MirrorMaker has
(`config.properties.exclude`). Settings that a topic of the target has and its source has not are reset.
"""

from collections.abc import Mapping
from typing import Final

from moldau.mirror.planning import NOT_COPIED, SourceTopic, TargetTopic, TopicPlan, following

NOT_IN_MIRROR_MAKER: Final = (
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms", "message.timestamp.difference.max.ms",
    "message.timestamp.type", "min.insync.replicas", "unclean.leader.election.enable",
)  # fmt: skip
GONE: Final = ("message.downconversion.enable", "message.format.version")
"""Settings that Kafka 4 does not have any more: a source that is older may."""


def copied_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that a topic has in the target as in its source."""
    return {
        name: value
        for name, value in settings.items()
        if not name.startswith(NOT_COPIED) and name not in NOT_IN_MIRROR_MAKER and name not in GONE
    }


def plan_remote(name: str, remote: str, source: SourceTopic, target: TargetTopic | None, target_id: str) -> TopicPlan:
    """`name`, `remote`: of the topic in source and target. `target_id`: the id of the target cluster."""
    if target_id and source.source.split("/")[0] == target_id:
        return TopicPlan(refused=f"{name} is a mirror of the target cluster itself: it is not mirrored back")
    wanted = copied_settings(source.settings)
    if target is None:
        return TopicPlan(make=True, changes=wanted)
    if target.settings.get("mirror.source"):
        return TopicPlan(refused=f"{remote} is a mirror of its own in the target cluster, to which nobody else writes")
    if target.partitions > source.partitions:
        return TopicPlan(
            refused=f"{remote} has {target.partitions} partitions in the target cluster and {name} has "
            f"{source.partitions} in the source: delete it in the target to mirror it anew"
        )
    return following(source, wanted, target, copied_settings(target.settings))
