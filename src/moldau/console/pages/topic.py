"""One topic: its partitions, its groups, its settings; more partitions, changed settings, and its deletion."""

from moldau.client.administration.configs import Resource
from moldau.client.cluster_view import PartitionView, TopicView
from moldau.console.asking.group_lags import group_lags
from moldau.console.asking.mirror_question import MIRROR_SOURCE, cluster_of
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.paths import path_to
from moldau.console.web.refusing import BAD_REQUEST, PageRefusal
from moldau.console.web.requests import PageRequest, whole_number
from moldau.errors import KafkaError, MoldauError
from moldau.names import TopicPartition

ROWS = 100
PARTITIONS_MAX = 100_000


async def _topic(request: PageRequest, name: str) -> TopicView:
    """Raises `UnknownTopicOrPartition`."""
    return (await request.admin.describe_topics([name]))[name]


async def partitions(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    topic = await _topic(request, name)
    part = paging(request, ROWS, len(topic.partitions))
    numbers = part.of(sorted(topic.partitions))
    places = [TopicPartition(name, number) for number in numbers]
    starts, ends = await request.admin.starts(places), await request.admin.ends(places)
    sizes = await request.admin.known_sizes([name])
    rows = [
        {
            "number": tp.partition,
            "view": topic.partitions[tp.partition],
            "start": starts.get(tp),
            "end": ends.get(tp),
            "records": ends[tp] - starts[tp] if tp in starts and tp in ends else None,
            "size_bytes": _leaders(topic.partitions[tp.partition], sizes.get(tp, {})),
        }
        for tp in places
    ]
    if request.is_fragment:
        return console.page(request, "topic_partition_rows.html", topic=topic, rows=rows, paging=part)
    source = await _mirrored_cluster(request, name)
    return console.page(request, "topic_partitions.html", topic=topic, rows=rows, paging=part, source=source)


async def _mirrored_cluster(request: PageRequest, name: str) -> str:
    """As `cluster_of`; "" also if the settings of the topic may not be read."""
    try:
        settings = {one.name: one.value for one in await request.admin.topic_configs(name)}
    except KafkaError as failure:
        if failure.retriable:
            raise
        return ""
    return cluster_of(settings.get(MIRROR_SOURCE))


def _leaders(view: PartitionView, by_broker: dict[int, int]) -> int | None:
    return by_broker.get(view.leader)


async def topic_groups(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    """The groups with committed offsets in the topic, and their lag there."""
    topic = await _topic(request, name)
    places = [TopicPartition(name, number) for number in topic.partitions]
    committed = await request.admin.committed_in([name])
    starts, ends = await request.admin.starts(places), await request.admin.ends(places)
    lags = await group_lags(request.admin, committed, starts, ends)
    states = {group.group_id: group.state for group in await request.admin.groups()}
    rows = [(group_id, states.get(group_id, ""), lags[group_id]) for group_id in sorted(lags)]
    template = "topic_group_rows.html" if request.is_fragment else "topic_groups.html"
    return console.page(request, template, topic=topic, rows=rows)


async def topic_settings(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    return await _settings_page(console, request, name)


async def _settings_page(
    console: ConsoleContext, request: PageRequest, name: str, wrong: str = "", status: int = 200
) -> Answer:
    topic = await _topic(request, name)
    entries = await request.admin.topic_configs(name)
    chosen = request.field("setting") or request.text("setting")
    return console.page(
        request, "topic_settings.html", status, topic=topic, entries=entries, wrong=wrong, chosen=chosen
    )


async def change_setting(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    setting = request.field("setting").strip()
    value = None if request.is_checked("reset") else request.field("value")
    try:
        await request.admin.configs.alter(Resource.TOPIC, name, {setting: value})
    except MoldauError as refused:
        return await _settings_page(console, request, name, request.said(refused), BAD_REQUEST)
    return redirection(path_to("topics", name, "settings") + "?done=changed")


async def add_partitions(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    try:
        count = whole_number("the number of partitions", request.field("partitions").strip(), 1, PARTITIONS_MAX)
        await request.admin.create_partitions(name, count)
    except MoldauError as refused:
        return await _settings_page(console, request, name, request.said(refused), BAD_REQUEST)
    return redirection(path_to("topics", name) + "?done=expanded")


async def delete_topic(console: ConsoleContext, request: PageRequest, name: str) -> Answer:
    """The name has to be typed: what is deleted does not come back."""
    if request.field("confirm") != name:
        raise PageRefusal(BAD_REQUEST, f"type the name of the topic, {name}, to delete it with all its records")
    await request.admin.delete_topic(name)
    request.admin.forget("topics")
    return redirection("/topics?done=deleted")
