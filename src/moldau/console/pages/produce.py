"""The form that produces one record, empty or with what another record has."""

import asyncio

from moldau.client.cluster_view import TopicView
from moldau.client.producing.delivery import Delivered
from moldau.console.context import ConsoleContext
from moldau.console.pages.messages import NUMBER_MAX, OFFSET_MAX, one_of
from moldau.console.pages.record_rows import WHOLE_BYTES_MAX
from moldau.console.search.outgoing import ENCODINGS, WITH_REGISTRY, form_of, record_of
from moldau.console.web.answers import Answer
from moldau.console.web.refusing import BAD_REQUEST, PageRefusal
from moldau.console.web.requests import PageRequest
from moldau.errors import MoldauError

FIELDS = ("partition", "key", "key_as", "key_schema", "value", "value_as", "value_schema", "headers")
EMPTY = {**dict.fromkeys(FIELDS, ""), "key_as": "null", "value_as": "text"}


async def produce_page(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    console.refuse_when_read_only()
    views = await request.admin.describe_topics([topic])
    form, is_masked = dict(EMPTY), False
    if request.text("offset"):
        one, schemas = await one_of(
            console,
            request,
            topic,
            request.number("partition", 0, 0, NUMBER_MAX),
            request.number("offset", 0, 0, OFFSET_MAX),
        )
        if one.size_bytes > WHOLE_BYTES_MAX:
            sentence = f"the record has {one.size_bytes:,} bytes, which are more than this form holds: export it"
            raise PageRefusal(BAD_REQUEST, f"{sentence}, and use `moldau produce --format json`")
        form |= form_of(one.key, one.value, one.headers, schemas)
        is_masked = bool(console.masks.of(topic))
    return _page(console, request, topic=views[topic], form=form, is_masked=is_masked)


async def produce(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    views = await request.admin.describe_topics([topic])
    form = {name: request.field(name) for name in FIELDS}
    wrong, sent = "", None
    try:
        record = await asyncio.to_thread(record_of, form, topic, console.encoder)  # it may ask the registry
        sent = await request.admin.produce(topic, record)
    except MoldauError as refused:
        wrong = request.said(refused)
    except (TypeError, ValueError) as unusable:
        wrong = str(unusable)
    status = BAD_REQUEST if wrong else 200
    return _page(console, request, status, topic=views[topic], form=form, wrong=wrong, sent=sent)


def _page(
    console: ConsoleContext,
    request: PageRequest,
    status: int = 200,
    *,
    topic: TopicView,
    form: dict[str, str],
    wrong: str = "",
    sent: Delivered | None = None,
    is_masked: bool = False,
) -> Answer:
    encodings = ENCODINGS if console.encoder is None else WITH_REGISTRY
    return console.page(
        request, "produce.html", status, topic=topic, form=form, wrong=wrong, sent=sent, encodings=encodings,
        has_registry=console.encoder is not None, is_masked=is_masked,
    )  # fmt: skip
