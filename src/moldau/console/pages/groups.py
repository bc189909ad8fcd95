"""The list of groups: names and states at once; members, topics and lag of those that are shown afterwards."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from moldau.client.administration.groups import GroupListing
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.asking.group_lags import GroupLag, ends_of, group_lags, records_behind
from moldau.console.context import ConsoleContext, Paging, paging
from moldau.console.web.answers import Answer
from moldau.console.web.requests import PageRequest
from moldau.console.web.sorting import DOWN, sorting

ROWS = 50
SORTS = {"group": "", "state": "", "lag": DOWN}


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
    starts, ends = await ends_of(admin, committed)
    lags = await group_lags(admin, committed, starts, ends)
    rows = []
    for one in shown:
        topics = sorted({tp.topic for tp in committed.get(one.group_id, {})})
        rows.append(GroupRow(one, members.get(one.group_id), topics, lags.get(one.group_id)))
    return rows


def _asked(request: PageRequest) -> dict[str, Any]:
    asked, state = request.text("q").strip()[:250], request.text("state")[:40]
    query = f"&{urlencode({'q': asked, 'state': state})}" if asked or state else ""
    return {"asked": asked, "state": state, "query": query, "order": sorting(request, SORTS)}


async def _shown(request: PageRequest) -> tuple[Paging, list[GroupListing]]:
    wanted, state = request.text("q").strip().lower(), request.text("state")
    found = [
        group
        for group in await request.admin.groups()
        if wanted in group.group_id.lower() and state in ("", group.state)
    ]
    part, order = paging(request, ROWS, len(found)), sorting(request, SORTS)
    if order.column == "lag":
        admin = request.admin
        behind = await admin.rows("the lag of all groups", (), lambda: records_behind(admin))
        found = order.of(found, lambda group: behind.get(group.group_id))
    elif order.column == "state":
        found = order.of(found, lambda group: group.state)
    elif order.is_down:
        found.reverse()
    return part, [*part.of(found)]
