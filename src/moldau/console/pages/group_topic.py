"""What a group has committed in one topic, and the deletion of these offsets: for a topic that it reads no more."""

from moldau.console.context import ConsoleContext
from moldau.console.pages.group import ROWS_OF_CHANGES
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.paths import path_to
from moldau.console.web.refusing import BAD_REQUEST, NOT_FOUND, PageRefusal
from moldau.console.web.requests import PageRequest
from moldau.errors import GroupIdNotFound, GroupSubscribedToTopic, MoldauError
from moldau.names import OffsetAndMetadata, TopicPartition

Committed = dict[TopicPartition, OffsetAndMetadata]


async def offsets(console: ConsoleContext, request: PageRequest, group_id: str) -> Answer:
    """The offsets that would be deleted: nothing is changed."""
    console.refuse_when_read_only()
    topic = request.text("topic")
    return _page(console, request, group_id, topic, await _committed(request, group_id, topic))


async def delete_offsets(console: ConsoleContext, request: PageRequest, group_id: str) -> Answer:
    """The name of the topic has to be typed: the group may read all its records again, or none of them."""
    topic = request.field("topic")
    committed = await _committed(request, group_id, topic)
    try:
        if request.field("confirm") != topic:
            raise PageRefusal(BAD_REQUEST, f"type the name of the topic, {topic}, to delete the group's offsets there")
        await request.admin.delete_group_offsets(group_id, committed)
    except GroupSubscribedToTopic:
        sentence = f"a member of the group reads {topic} and would commit again: stop it, or let it unsubscribe, first"
        return _page(console, request, group_id, topic, committed, sentence)
    except MoldauError as refused:
        return _page(console, request, group_id, topic, committed, request.said(refused))
    request.admin.forget("readers")
    is_there = bool(await request.admin.group_offsets(group_id)) or await _exists(request, group_id)
    return redirection((path_to("groups", group_id) if is_there else "/groups") + "?done=offsets-deleted")


async def _committed(request: PageRequest, group_id: str, topic: str) -> Committed:
    """Raises `PageRefusal` if there are none."""
    every = await request.admin.group_offsets(group_id)
    committed = {tp: one for tp, one in every.items() if tp.topic == topic}
    if not committed:
        raise PageRefusal(NOT_FOUND, f"the group {group_id} has no committed offsets in a topic {topic[:249]!r}")
    return committed


async def _exists(request: PageRequest, group_id: str) -> bool:
    """Whether a group without offsets has a page."""
    try:
        await request.admin.describe_group(group_id)
    except GroupIdNotFound:
        return False
    return True


def _page(
    console: ConsoleContext, request: PageRequest, group_id: str, topic: str, committed: Committed, wrong: str = ""
) -> Answer:
    rows = [(tp.partition, one.offset) for tp, one in sorted(committed.items())]
    return console.page(
        request, "group_topic.html", BAD_REQUEST if wrong else 200, group_id=group_id, topic=topic, wrong=wrong,
        rows=rows[:ROWS_OF_CHANGES], total=len(rows),
    )  # fmt: skip
