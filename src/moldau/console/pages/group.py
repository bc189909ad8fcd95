"""One group: its members, its offsets with the lag in records and seconds; moving the offsets, and its deletion."""

import asyncio
from collections.abc import Mapping
from typing import Any

from moldau.client.administration.group_offsets import LogEnds, duration_ms, moved, time_ms
from moldau.client.administration.groups import GroupDescription
from moldau.console.asking.group_lags import ends_of
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.paths import path_to
from moldau.console.web.refusing import BAD_REQUEST, PageRefusal
from moldau.console.web.requests import PageRequest, whole_number
from moldau.console.web.sorting import DOWN, sorting
from moldau.errors import ConfigError, GroupIdNotFound, MoldauError
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.records.lag import lag_records
from moldau.runtime import RealClock

ROWS, MEMBERS_SHOWN = 100, 200
ROWS_OF_CHANGES = 1_000
"""Partitions that a page lists before their offsets are changed."""
SORTS = {"topic": "", "lag": DOWN}
ALL_TOPICS = ""
RESETS = {
    "earliest": "to the first record",
    "latest": "to the end",
    "time": "to a time, such as 2026-11-28T08:00:00",
    "duration": "to a time before now, such as PT1H30M or P7D",
    "offset": "to an offset",
    "shift": "by a number of records, back if it is negative",
}
OFFSET_MAX = 2**63 - 1


async def group(console: ConsoleContext, request: PageRequest, group_id: str) -> Answer:
    committed = await request.admin.group_offsets(group_id)
    description = await _described(request, group_id, is_known=bool(committed))
    owners = {tp: member for member in description.members for tp in member.partitions} if description else {}
    everything, order = sorted({*committed, *owners}), sorting(request, SORTS)
    if order.column == "lag":
        starts, ends = await ends_of(request.admin, {group_id: {tp: one.offset for tp, one in committed.items()}})
        known = {tp: one.offset for tp, one in committed.items() if tp in ends}
        behind = {tp: lag_records(offset, starts.get(tp, 0), ends[tp]) for tp, offset in known.items()}
        everything = order.of(everything, behind.get)
    elif order.is_down:
        everything.reverse()
    part = paging(request, ROWS, len(everything))
    shown = part.of(everything)
    lags = await request.admin.lag_of({tp: committed[tp].offset if tp in committed else None for tp in shown})
    rows = [(tp, committed.get(tp), lags.get(tp), owners.get(tp)) for tp in shown]
    values: dict[str, Any] = {"rows": rows, "paging": part, "group_id": group_id, "description": description}
    values |= {"order": order, "members_shown": MEMBERS_SHOWN}
    if request.is_fragment:
        return console.page(request, "group_part.html", **values)
    topics, with_offsets = {tp.topic for tp in everything}, {tp.topic for tp in committed}
    return console.page(request, "group.html", topics=topics, with_offsets=with_offsets, resets=RESETS, **values)


async def _described(request: PageRequest, group_id: str, *, is_known: bool) -> GroupDescription | None:
    """None for a group that has offsets and nothing else. Raises `GroupIdNotFound`."""
    try:
        return await request.admin.describe_group(group_id)
    except GroupIdNotFound:
        if not is_known:
            raise
        return None


async def reset(console: ConsoleContext, request: PageRequest, group_id: str) -> Answer:
    """Show what would be moved; carry it out if the form says so."""
    committed = await request.admin.group_offsets(group_id)
    way, value, topic = request.field("way"), request.field("value").strip(), request.field("topic")
    wrong, targets = "", dict[TopicPartition, OffsetAndMetadata]()
    try:
        targets = await _targets(request, committed, topic, way, value)
        if request.is_checked("execute") and targets:
            await _refuse_with_members(request, group_id)
            await request.admin.alter_group_offsets(group_id, targets)
            request.admin.forget("readers")
            return redirection(path_to("groups", group_id) + "?done=reset")
    except MoldauError as refused:
        wrong = request.said(refused)
    rows = [(tp, committed.get(tp), at) for tp, at in sorted(targets.items())]
    form = {"way": way, "value": value, "topic": topic}
    status = BAD_REQUEST if wrong else 200
    return console.page(
        request, "group_reset.html", status, group_id=group_id, rows=rows[:ROWS_OF_CHANGES], total=len(rows),
        wrong=wrong, form=form, resets=RESETS,
    )  # fmt: skip


async def _refuse_with_members(request: PageRequest, group_id: str) -> None:
    description = await _described(request, group_id, is_known=True)
    if description is not None and description.members:
        raise ConfigError(
            f"the group has {len(description.members)} members, which would commit over it: stop them first"
        )


async def _targets(
    request: PageRequest, committed: Mapping[TopicPartition, OffsetAndMetadata], topic: str, way: str, value: str
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Raises `ConfigError` and `KafkaError`."""
    if way not in RESETS:
        raise ConfigError("choose where the offsets are to be moved")
    admin = request.admin
    if topic == ALL_TOPICS:
        there = await admin.topics_named({tp.topic for tp in committed})
        partitions = [tp for tp in committed if tp.topic in there and tp.partition in there[tp.topic].partitions]
    else:
        views = await admin.describe_topics([topic])
        partitions = [TopicPartition(topic, number) for number in views[topic].partitions]
    starts, ends = await asyncio.gather(
        admin.offsets(dict.fromkeys(partitions, "earliest")), admin.offsets(dict.fromkeys(partitions, "latest"))
    )
    at_times: dict[TopicPartition, int] = {}
    if way in ("time", "duration"):
        since_ms = time_ms(value) if way == "time" else RealClock().now_ms() - duration_ms(value)
        at_times = await admin.offsets(dict.fromkeys(partitions, max(since_ms, 0)))
    number = 0
    if way in ("offset", "shift"):
        number = whole_number("the number", value, 0 if way == "offset" else -OFFSET_MAX, OFFSET_MAX)
    log = LogEnds(starts, ends, at_times)
    return moved(partitions, committed, "time" if way == "duration" else way, number, log)


async def delete_group(console: ConsoleContext, request: PageRequest, group_id: str) -> Answer:
    if request.field("confirm") != group_id:
        raise PageRefusal(BAD_REQUEST, f"type the name of the group, {group_id}, to delete it with its offsets")
    await request.admin.delete_group(group_id)
    request.admin.forget("groups")
    request.admin.forget("readers")
    return redirection("/groups?done=group-deleted")
