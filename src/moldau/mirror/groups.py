"""Offsets of consumer groups, as the source has them: committed in the target as far as records have arrived.

Only for groups that have no members in the target, and never backwards: a group that works there, or has worked there,
knows better. A position is the same offset in both clusters; its leader epoch is not.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from moldau.errors import KafkaError
from moldau.mirror.ends import ClusterEnd, source_of
from moldau.mirror.sharing import GROUP
from moldau.names import OffsetAndMetadata, TopicPartition

WITHOUT_MEMBERS = ("Empty", "Dead")
SHARE = "share"
"""The type of groups that have no offsets."""


def to_commit(
    of_source: Mapping[TopicPartition, OffsetAndMetadata],
    of_target: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What a group is to have committed in the target, where it has not. `ends`: of the mirrors' logs."""
    wanted: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, at in of_source.items():
        if tp in ends:
            offset = min(at.offset, ends[tp])
            if tp not in of_target or of_target[tp].offset < offset:
                wanted[tp] = OffsetAndMetadata(offset, at.metadata)
    return wanted


class GroupsSynced(NamedTuple):
    """`changed`: in how many partitions offsets were committed, by group. `failures`: why those of other groups could
    not be read or committed."""

    changed: dict[str, int]
    failures: dict[str, KafkaError]


async def sync_groups(
    source: ClusterEnd, target: ClusterEnd, mirrors: Mapping[str, str], groups: re.Pattern[str]
) -> GroupsSynced:
    """Commit the offsets of each group that matches. `mirrors`: name -> `mirror.source`. Raises `KafkaError` if a
    cluster does not answer; a failure of one group holds up no other."""
    states = {one.group_id: one.state for one in await target.admin.list_groups()}
    views = target.router.view.topics
    partitions = [
        TopicPartition(name, number) for name in mirrors if name in views for number in views[name].partitions
    ]
    ends = await target.admin.offsets(dict.fromkeys(partitions, "latest"), known_only=True) if partitions else {}
    synced = GroupsSynced({}, {})
    positions: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for group in await source.admin.list_groups():
        name = group.group_id
        if name.startswith(GROUP) or not groups.fullmatch(name) or group.type.lower() == SHARE:
            continue
        if states.get(name, "Empty") not in WITHOUT_MEMBERS:
            continue
        try:
            of_source = await source.admin.group_offsets(name)
        except KafkaError as failure:  # it was deleted meanwhile, or rights are missing
            synced.failures[name] = failure
            continue
        positions[name] = {tp: at for tp, at in of_source.items() if tp in ends}
    # A topic that was made anew before these positions were asked has another id now: they are not of the mirror.
    of_today = await source.topics()
    mirrored = {
        name
        for name, mirror_source in mirrors.items()
        if name in of_today and source_of(source.cluster_id, of_today[name].topic_id) == mirror_source
    }
    for name, found in positions.items():
        of_source = {tp: at for tp, at in found.items() if tp.topic in mirrored}
        if not of_source:
            continue
        try:
            of_target = await target.admin.group_offsets(name) if name in states else {}
            wanted = to_commit(of_source, of_target, ends)
            if wanted:
                await target.admin.alter_group_offsets(name, wanted)
                synced.changed[name] = len(wanted)
        except KafkaError as failure:  # a member has joined meanwhile, or rights are missing
            synced.failures[name] = failure
    return synced
