"""The list of topics, and the form for a new one. The list loads sizes, groups and lag after it is shown."""

from collections.abc import Iterable
from operator import attrgetter
from urllib.parse import urlencode

from moldau.client.cluster_view import TopicView
from moldau.console.asking.cluster_admin import ClusterAdmin, is_internal
from moldau.console.asking.topic_rows import TopicRow, full_row, lags_by_topic, plain_row
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.paths import path_to
from moldau.console.web.refusing import BAD_REQUEST
from moldau.console.web.requests import PageRequest, whole_number
from moldau.console.web.sorting import DOWN, sorting
from moldau.errors import KafkaError, MoldauError
from moldau.names import TopicPartition

ROWS = 50
SORTS_BY = {
    "name": "name", "partitions": "partitions", "records": "records", "size": "size_bytes", "groups": "groups",
    "lag": "lag",
}  # fmt: skip
"""Column -> field of a row."""
SORTS = {column: "" if column == "name" else DOWN for column in SORTS_BY}
PARTITIONS_MAX, REPLICAS_MAX = 100_000, 1_000
NAME_CHARACTERS_MAX = 249


async def topics(console: ConsoleContext, request: PageRequest) -> Answer:
    return await _list(console, request, "topics.html", is_full=False)


async def topic_rows(console: ConsoleContext, request: PageRequest) -> Answer:
    """The same rows with records, size, groups and lag, which the page loads."""
    return await _list(console, request, "topic_rows.html", is_full=True)


async def _list(console: ConsoleContext, request: PageRequest, template: str, *, is_full: bool) -> Answer:
    """A part of the list. An order by a column that has to be asked for needs the whole rows of all topics."""
    admin, order, names = request.admin, sorting(request, SORTS), await _names(request)
    part = paging(request, ROWS, len(names))
    if order.column == "name":
        shown = await admin.topics_named(part.of(order.of(names, str)))
        views, is_whole = [*shown.values()], is_full
        rows = [plain_row(topic) for topic in views]
        if is_whole:
            rows = await admin.rows("topics", shown, lambda: _full_rows(admin, views))
    else:
        every = await admin.rows("all topics", (), lambda: _all_rows(admin))
        found = [every[name] for name in names if name in every]
        part, is_whole = paging(request, ROWS, len(found)), True
        rows = [*part.of(order.of(found, attrgetter(SORTS_BY[order.column])))]
    asked = {name: request.text(name).strip()[:NAME_CHARACTERS_MAX] for name in ("q", "internal", "ailing")}
    query = urlencode({name: text for name, text in asked.items() if text})
    return console.page(
        request, template, rows=rows, paging=part, is_full=is_whole, order=order, query=f"&{query}" if query else "",
        asked=asked["q"], internal=bool(asked["internal"]), ailing=bool(asked["ailing"]),
    )  # fmt: skip


async def _names(request: PageRequest) -> list[str]:
    wanted, internal = request.text("q").strip().lower(), bool(request.text("internal"))
    names: Iterable[str] = await request.admin.topic_names()
    if request.text("ailing"):
        plain = map(plain_row, (await request.admin.every_topic()).values())
        names, internal = sorted(row.name for row in plain if row.leaderless or row.under_replicated), True
    return [name for name in names if wanted in name.lower() and (internal or not is_internal(name))]


async def _all_rows(admin: ClusterAdmin) -> dict[str, TopicRow]:
    views = [*(await admin.every_topic()).values()]
    return {row.name: row for row in await _full_rows(admin, views)}


async def _full_rows(admin: ClusterAdmin, shown: list[TopicView]) -> list[TopicRow]:
    places = [TopicPartition(topic.name, number) for topic in shown for number in topic.partitions]
    starts, ends = await admin.starts(places), await admin.ends(places)
    names = [topic.name for topic in shown]
    sizes, committed = await admin.known_sizes(names), None
    try:
        committed = await admin.committed_in(names)
    except KafkaError as denied:
        if denied.retriable:
            raise
    lags = None if committed is None else lags_by_topic(committed, starts, ends)
    return [full_row(topic, starts, ends, sizes, lags) for topic in shown]


async def new_topic(console: ConsoleContext, request: PageRequest) -> Answer:
    console.refuse_when_read_only()
    return console.page(request, "topic_new.html", wrong="", form={})


async def create_topic(console: ConsoleContext, request: PageRequest) -> Answer:
    name = request.field("name").strip()
    try:
        partitions = _number(request, "partitions", PARTITIONS_MAX)
        replicas = _number(request, "replicas", REPLICAS_MAX)
        await request.admin.create_topic(
            name, partitions=partitions, replication_factor=replicas, configs=_settings(request.field("settings"))
        )
    except MoldauError as refused:
        given = {field: request.field(field) for field in ("name", "partitions", "replicas", "settings")}
        return console.page(request, "topic_new.html", BAD_REQUEST, wrong=request.said(refused), form=given)
    request.admin.forget("topics")
    return redirection(path_to("topics", name) + "?done=created")


def _number(request: PageRequest, field: str, high: int) -> int:
    """-1, the broker's default, if the field is empty. Raises `PageRefusal`."""
    text = request.field(field).strip()
    return whole_number(field, text, 1, high) if text else -1


def _settings(text: str) -> dict[str, str]:
    """A setting from each line of NAME=VALUE; the broker judges names and values."""
    pairs = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
