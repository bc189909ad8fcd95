"""Which topics are mirrored, and what the target lacks for it. Pure.

A topic that cannot be mirrored has a sentence for the operator; the others go on. A target topic is made, expanded and
configured as its source. What concerns replicas and the disks of a cluster is not copied.
"""

from collections.abc import Mapping
from typing import NamedTuple

NOT_COPIED = ("mirror.", "remote.", "local.retention.")
"""Settings that begin so are of one cluster only, or of storage that the target does not have."""
NOT_COPIED_EITHER = (
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas", "min.insync.replicas",
    "unclean.leader.election.enable",
)  # fmt: skip
FAILING_OVER = "failing-over/"
"""How `mirror.source` begins while a mirror fails over: no worker writes to it any more, and no client yet."""


class SourceTopic(NamedTuple):
    """A topic to mirror: how many partitions it has, the settings made for it, and its `mirror.source` there."""

    partitions: int
    settings: Mapping[str, str]
    source: str


class TargetTopic(NamedTuple):
    partitions: int
    settings: Mapping[str, str]


class TopicPlan(NamedTuple):
    """What is to be done for one topic: `make` it, raise its partitions to `expand_to`, change settings (None resets
    one); or nothing, because of the sentence `refused`."""

    make: bool = False
    expand_to: int | None = None
    changes: Mapping[str, str | None] = {}
    refused: str = ""


def copied(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that a mirror has as its source."""
    return {
        name: value
        for name, value in settings.items()
        if not name.startswith(NOT_COPIED) and name not in NOT_COPIED_EITHER
    }


def plan(name: str, source: SourceTopic, mirror_source: str, target: TargetTopic | None, target_id: str) -> TopicPlan:
    """`mirror_source`: the setting that the mirror must have. `target_id`: the id of the target cluster."""
    if source.source.split("/")[0] == target_id:
        return TopicPlan(refused=f"{name} is a mirror of the target cluster itself: it is not mirrored back")
    wanted = copied(source.settings)
    if target is None:
        return TopicPlan(make=True, changes={**wanted, "mirror.source": mirror_source})
    mirrors = target.settings.get("mirror.source", "")
    if not mirrors:
        return TopicPlan(
            refused=f"{name} exists in the target cluster and is not a mirror: delete it there to mirror it anew"
        )
    if mirrors.startswith(FAILING_OVER):
        return TopicPlan(refused=f"{name} fails over, or its fail-over was interrupted: it takes no records any more")
    if mirrors != mirror_source:
        what = "another cluster"
        if mirrors.split("/")[0] == mirror_source.split("/")[0]:
            what = "an earlier topic of this name, which was deleted in the source cluster"
        return TopicPlan(refused=f"{name} mirrors {what}: delete it in the target cluster to mirror it anew")
    if target.partitions > source.partitions:
        return TopicPlan(
            refused=f"{name} has {target.partitions} partitions in the target cluster and {source.partitions} in the "
            "source: delete it in the target to mirror it anew"
        )
    return following(source, wanted, target, copied(target.settings))


def following(source: SourceTopic, wanted: Mapping[str, str], target: TargetTopic, has: Mapping[str, str]) -> TopicPlan:
    """How a topic of the target gets the partitions of its source and the settings that are `wanted`, of those that are
    copied: it `has` these."""
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if has.get(key) != value}
    changes |= {key: None for key in has if key not in wanted}
    return TopicPlan(expand_to=source.partitions if target.partitions < source.partitions else None, changes=changes)
