"""How far many groups are behind, in records and in seconds, for lists of groups."""

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.lag import Place, waiting_seconds
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.asking.group_questions import Committed
from moldau.names import TopicPartition
from moldau.records.lag import lag_records

LOOK_UPS_MAX = 2_000
"""More records than this are not looked at for one list; the groups behind have no lag in seconds."""


class GroupLag(NamedTuple):
    """What a group has not read of some partitions: the number of records, and the age of the oldest one, None if it is
    not known."""

    records: int
    seconds: float | None


async def ends_of(
    admin: ClusterAdmin, committed: Committed
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The first offsets and ends of the partitions that still exist among those with committed offsets."""
    there = await admin.topics_named({tp.topic for offsets in committed.values() for tp in offsets})
    places = {
        tp
        for offsets in committed.values()
        for tp in offsets
        if tp.topic in there and tp.partition in there[tp.topic].partitions
    }
    return await admin.starts(places), await admin.ends(places)


async def records_behind(admin: ClusterAdmin) -> dict[str, int]:
    """How many records each group of the cluster has not read. Of groups without a known offset nothing is known."""
    committed = await admin.committed(one.group_id for one in await admin.groups())
    starts, ends = await ends_of(admin, committed)
    return {
        group_id: sum(lag_records(at, starts.get(tp, 0), ends[tp]) for tp, at in offsets.items() if tp in ends)
        for group_id, offsets in committed.items()
        if any(tp in ends for tp in offsets)
    }


async def group_lags(
    admin: ClusterAdmin,
    committed: Committed,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[str, GroupLag]:
    """The lag of each group that has an offset in one of these partitions. Deleted records do not count."""
    positions = {
        group_id: {tp: max(offset, starts.get(tp, 0)) for tp, offset in offsets.items() if tp in ends}
        for group_id, offsets in committed.items()
    }
    waiting: dict[Place, int] = {}
    for of_group in positions.values():
        behind = {(tp, at): ends[tp] for tp, at in of_group.items() if at < ends[tp]}
        if len(waiting) + len(behind) <= LOOK_UPS_MAX:
            waiting |= behind
    since, now_ms = await admin.waiting_since(waiting), admin.now_ms()
    lags: dict[str, GroupLag] = {}
    for group_id, of_group in positions.items():
        behind_at = [(tp, at) for tp, at in of_group.items() if at < ends[tp]]
        ages = [waiting_seconds(now_ms, since[place]) for place in behind_at if place in since]
        known = [age for age in ages if age is not None]
        if of_group:
            records = sum(ends[tp] - at for tp, at in behind_at)
            lags[group_id] = GroupLag(records, max(known, default=None) if behind_at else 0.0)
    return lags
