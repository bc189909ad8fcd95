"""The form that produces one record, empty or with what another record has."""

from moldau.console.context import ConsoleContext
from moldau.console.pages.messages import NUMBER_MAX, OFFSET_MAX, one_of
from moldau.console.search.outgoing import ENCODINGS, form_of, record_of
from moldau.console.web.answers import Answer
from moldau.console.web.refusing import BAD_REQUEST
from moldau.console.web.requests import PageRequest
from moldau.errors import MoldauError

FIELDS = ("partition", "key", "key_as", "value", "value_as", "headers")
EMPTY = {**dict.fromkeys(FIELDS, ""), "key_as": "null", "value_as": "text"}


async def produce_page(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    views = await request.admin.describe_topics([topic])
    form = dict(EMPTY)
    if request.text("offset"):
        one = await one_of(
            console,
            request,
            topic,
            request.number("partition", 0, 0, NUMBER_MAX),
            request.number("offset", 0, 0, OFFSET_MAX),
        )
        form |= form_of(one.key, one.value, one.headers)
    return console.page(
        request, "produce.html", topic=views[topic], form=form, wrong="", sent=None, encodings=ENCODINGS
    )


async def produce(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    views = await request.admin.describe_topics([topic])
    form = {name: request.field(name) for name in FIELDS}
    wrong, sent = "", None
    try:
        sent = await request.admin.produce(topic, record_of(form))
    except (MoldauError, TypeError, ValueError) as refused:
        wrong = str(refused)
    status = BAD_REQUEST if wrong else 200
    return console.page(
        request, "produce.html", status, topic=views[topic], form=form, wrong=wrong, sent=sent, encodings=ENCODINGS
    )
