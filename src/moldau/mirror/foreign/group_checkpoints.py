"""Which positions of groups are told in the target, and which are committed there. Pure.

A checkpoint goes ahead in the mirror only, unless the group went back in the source: translation gets less exact as
pairs of offsets are forgotten, and a group must not go back for that.
"""

import re
from collections.abc import Mapping
from typing import Final

from moldau.mirror.foreign.mirror_records import TEXT_MAX, GroupCheckpoint
from moldau.mirror.foreign.offset_syncs import OffsetTranslation
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.sharing import GROUP
from moldau.names import OffsetAndMetadata, TopicPartition

NOT_TOLD: Final = re.compile(r"console-consumer-.*|connect-.*|__.*")
"""The groups that MirrorMaker's filter leaves out by default."""

ToldCheckpoints = dict[tuple[str, TopicPartition], GroupCheckpoint]
"""The last checkpoint of each group and partition of the target."""


def selects(group: str, wanted: re.Pattern[str]) -> bool:
    """Whether the positions of this group are told."""
    is_left_out = NOT_TOLD.fullmatch(group) or group.startswith(GROUP) or len(group.encode()) > TEXT_MAX
    return wanted.fullmatch(group) is not None and not is_left_out


def translated(
    group: str,
    of_source: Mapping[TopicPartition, OffsetAndMetadata],
    mirrored: Mapping[str, object],
    policy: ReplicationPolicy,
    translation: OffsetTranslation,
) -> list[GroupCheckpoint]:
    """The positions of a group in the topics that are mirrored, as far as they are known in the target. Metadata for
    which a checkpoint has no room is left out: the position counts without it."""
    found: list[GroupCheckpoint] = []
    for tp, at in of_source.items():
        downstream = translation.translate(tp, at.offset) if tp.topic in mirrored else None
        if downstream is not None:
            there = TopicPartition(policy.remote(tp.topic), tp.partition)
            metadata = at.metadata if len(at.metadata.encode()) <= TEXT_MAX else ""
            found.append(GroupCheckpoint(group, there, at.offset, downstream, metadata))
    return found


def news(found: list[GroupCheckpoint], known: ToldCheckpoints) -> list[GroupCheckpoint]:
    """Those that have to be told: the group is further in the mirror than was told, or went back in the source."""
    changed: list[GroupCheckpoint] = []
    for one in found:
        before = known.get((one.group, one.tp))
        if before is None or one.upstream < before.upstream or one.downstream > before.downstream:
            changed.append(one)
    return changed


def of_group(group: str, known: ToldCheckpoints) -> dict[TopicPartition, OffsetAndMetadata]:
    """What was told of a group, as positions in the target."""
    return {tp: OffsetAndMetadata(one.downstream, one.metadata) for (name, tp), one in known.items() if name == group}
