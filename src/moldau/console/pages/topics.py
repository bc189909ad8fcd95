"""The list of topics, and the form for a new one. The list loads sizes, groups and lag after it is shown."""

from typing import Any

from moldau.client.cluster_view import TopicView
from moldau.console.asking.cluster_admin import ClusterAdmin, Committed, is_internal
from moldau.console.asking.topic_rows import TopicRow, full_row, lags_by_topic, plain_row
from moldau.console.context import ConsoleContext, Paging, paging
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.paths import path_to
from moldau.console.web.refusing import BAD_REQUEST
from moldau.console.web.requests import PageRequest, whole_number
from moldau.errors import KafkaError, MoldauError
from moldau.names import TopicPartition

ROWS = 50
PARTITIONS_MAX, REPLICAS_MAX = 100_000, 1_000
NAME_CHARACTERS_MAX = 249


async def topics(console: ConsoleContext, request: PageRequest) -> Answer:
    part, shown = await _shown(request)
    rows = [plain_row(topic) for topic in shown]
    return console.page(request, "topics.html", rows=rows, paging=part, is_full=False, **_asked(request))


async def topic_rows(console: ConsoleContext, request: PageRequest) -> Answer:
    """The same rows with records, size, groups and lag, which the page loads."""
    part, shown = await _shown(request)
    admin = request.admin
    rows = await admin.rows("topics", (topic.name for topic in shown), lambda: _full_rows(admin, shown))
    return console.page(request, "topic_rows.html", rows=rows, paging=part, is_full=True, **_asked(request))


def _asked(request: PageRequest) -> dict[str, Any]:
    return {"asked": request.text("q").strip()[:NAME_CHARACTERS_MAX], "internal": bool(request.text("internal"))}


async def _shown(request: PageRequest) -> tuple[Paging, list[TopicView]]:
    wanted, internal = request.text("q").strip().lower(), bool(request.text("internal"))
    names = [
        name
        for name in await request.admin.topic_names()
        if wanted in name.lower() and (internal or not is_internal(name))
    ]
    part = paging(request, ROWS, len(names))
    return part, [*(await request.admin.topics_named(part.of(names))).values()]


async def _full_rows(admin: ClusterAdmin, shown: list[TopicView]) -> list[TopicRow]:
    places = [TopicPartition(topic.name, number) for topic in shown for number in topic.partitions]
    starts, ends = await admin.starts(places), await admin.ends(places)
    sizes: dict[TopicPartition, dict[int, int]] = {}
    committed: Committed | None = None
    try:
        sizes = await admin.sizes(topic.name for topic in shown) if shown else {}
        committed = await admin.committed_in([topic.name for topic in shown])
    except KafkaError as denied:
        if denied.retriable:
            raise
    lags = None if committed is None else lags_by_topic(committed, starts, ends)
    return [full_row(topic, starts, ends, sizes, lags) for topic in shown]


async def new_topic(console: ConsoleContext, request: PageRequest) -> Answer:
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
        return console.page(request, "topic_new.html", BAD_REQUEST, wrong=str(refused), form=given)
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
