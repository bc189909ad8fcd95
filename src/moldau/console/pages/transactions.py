"""Transactions: those that coordinators know, one of them with its partitions, and those that hang in a topic.

A transaction hangs if a partition holds it open and no coordinator knows it: no marker will end it, until somebody
aborts it by hand.
"""

from urllib.parse import urlencode

from moldau.client.administration.transactions import OpenTransaction
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.refusing import BAD_REQUEST, PageRefusal
from moldau.console.web.requests import PageRequest, whole_number
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.runtime import RealClock

ROWS = 100
MINUTES, MINUTE_MS, MINUTES_MAX = 15, 60_000, 1_000_000
"""A transaction may last for transaction.max.timeout.ms, by default as many minutes."""
NUMBER_MAX, OFFSET_MAX = 2**31 - 1, 2**63 - 1
STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Empty")


async def transactions(console: ConsoleContext, request: PageRequest) -> Answer:
    wanted, state = request.text("q").strip().lower(), request.text("state")
    states = [state] if state in STATES else []
    found = [
        one for one in await request.admin.transactions.list(states=states) if wanted in one.transactional_id.lower()
    ]
    part = paging(request, ROWS, len(found))
    return console.page(
        request,
        "transactions.html",
        rows=part.of(found),
        paging=part,
        asked=request.text("q").strip()[:250],
        state=state,
        states=STATES,
    )


async def transaction(console: ConsoleContext, request: PageRequest, transactional_id: str) -> Answer:
    one = await request.admin.transactions.describe(transactional_id)
    open_s = None if one.start_ms is None else max(RealClock().now_ms() - one.start_ms, 0) / 1_000
    return console.page(request, "transaction.html", transaction=one, open_s=open_s)


async def hanging(console: ConsoleContext, request: PageRequest) -> Answer:
    """The transactions that hang in the topic that the query names."""
    topic, wrong, status, rows = request.text("topic").strip(), "", 200, list[OpenTransaction]()
    minutes = request.number("minutes", MINUTES, 0, MINUTES_MAX)
    if topic:
        try:
            view = (await request.admin.describe_topics([topic]))[topic]
            places = [TopicPartition(topic, number) for number in view.partitions]
            rows = await request.admin.transactions.hanging(places, minutes * MINUTE_MS)
        except KafkaError as refused:
            wrong, status = request.said(refused), BAD_REQUEST
    return console.page(
        request, "hanging.html", status, rows=rows[:ROWS], topic=topic, minutes=minutes, wrong=wrong,
        more=max(len(rows) - ROWS, 0),
    )  # fmt: skip


async def abort_hanging(console: ConsoleContext, request: PageRequest) -> Answer:
    """Abort a transaction in one partition, if it still hangs there: one that its coordinator knows would lose a part
    and commit the rest."""
    topic = request.field("topic")
    tp = TopicPartition(topic, whole_number("the partition", request.field("partition"), 0, NUMBER_MAX))
    start = whole_number("the offset", request.field("offset"), 0, OFFSET_MAX)
    minutes = whole_number("minutes", request.field("minutes"), 0, MINUTES_MAX)
    found = await request.admin.transactions.hanging([tp], minutes * MINUTE_MS)
    one = next((one.producer for one in found if one.producer.start_offset == start), None)
    if one is None:
        raise PageRefusal(BAD_REQUEST, f"no transaction that began at offset {start} hangs in {tp} any more")
    await request.admin.transactions.abort(tp, one.producer_id, one.producer_epoch, one.coordinator_epoch)
    return redirection(f"/hanging?{urlencode({'topic': topic, 'minutes': minutes, 'done': 'aborted'})}")
