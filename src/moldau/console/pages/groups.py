"""The list of groups: names and states at once; members, topics and lag of those that are shown afterwards."""

from typing import Any, NamedTuple

from moldau.client.administration.groups import GroupListing
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.asking.group_lags import GroupLag, group_lags
from moldau.console.context import ConsoleContext, Paging, paging
from moldau.console.web.answers import Answer
from moldau.console.web.requests import PageRequest

ROWS = 50


class GroupRow(NamedTuple):
    """A group in the list; None before it is asked for, and where it is not known."""

    group: GroupListing
    members: int | None = None
    topics: list[str] | None = None
    lag: GroupLag | None = None


async def groups(console: ConsoleContext, request: PageRequest) -> Answer:
    part, shown = await _shown(request)
    rows = [GroupRow(one) for one in shown]
    return console.page(request, "groups.html", rows=rows, paging=part, is_full=False, **_asked(request))


async def group_rows(console: ConsoleContext, request: PageRequest) -> Answer:
    """The same rows with members, topics and lag, which the page loads."""
    part, shown = await _shown(request)
    admin = request.admin
    rows = await admin.rows("groups", (one.group_id for one in shown), lambda: _full_rows(admin, shown))
    return console.page(request, "group_rows.html", rows=rows, paging=part, is_full=True, **_asked(request))


async def _full_rows(admin: ClusterAdmin, shown: list[GroupListing]) -> list[GroupRow]:
    members = await admin.member_counts(shown)
    committed = await admin.committed(one.group_id for one in shown)
    there = await admin.topics_named({tp.topic for offsets in committed.values() for tp in offsets})
    places = {
        tp
        for offsets in committed.values()
        for tp in offsets
        if tp.topic in there and tp.partition in there[tp.topic].partitions
    }
    starts, ends = await admin.starts(places), await admin.ends(places)
    lags = await group_lags(admin, committed, starts, ends)
    rows = []
    for one in shown:
        topics = sorted({tp.topic for tp in committed.get(one.group_id, {})})
        rows.append(GroupRow(one, members.get(one.group_id), topics, lags.get(one.group_id)))
    return rows


def _asked(request: PageRequest) -> dict[str, Any]:
    return {"asked": request.text("q").strip()[:250], "state": request.text("state")[:40]}


async def _shown(request: PageRequest) -> tuple[Paging, list[GroupListing]]:
    wanted, state = request.text("q").strip().lower(), request.text("state")
    found = [
        group
        for group in await request.admin.groups()
        if wanted in group.group_id.lower() and state in ("", group.state)
    ]
    part = paging(request, ROWS, len(found))
    return part, [*part.of(found)]
