"""The records of a topic: the form of a search, the search itself as a stream, its export, and one record."""

from collections.abc import AsyncIterator
from urllib.parse import urlencode

from moldau.console.asking.ranges import one_record, ranges_of
from moldau.console.context import ConsoleContext
from moldau.console.pages.record_rows import RecordRow, content_of
from moldau.console.search import exporting
from moldau.console.search.matching import SearchMatcher
from moldau.console.search.records import PREVIEW_BYTES, ShownRecord
from moldau.console.search.rounds import count, place_of, ranges_at
from moldau.console.search.scanning import TopicScan
from moldau.console.search.searching import searched, steps
from moldau.console.search.wanted import LIMITS, OLDEST, STARTS, SearchWanted, wanted_by
from moldau.console.web.answers import NOT_STORED, Answer, StreamAnswer
from moldau.console.web.events import ALIVE, MEDIA_TYPE, event
from moldau.console.web.refusing import BAD_REQUEST, NOT_FOUND, PageRefusal, refusal_of
from moldau.console.web.requests import PageRequest, whole_number
from moldau.errors import ConfigError, KafkaError, MoldauError

NUMBER_MAX, OFFSET_MAX = 2**31 - 1, 2**63 - 2
PLACE_PARTITIONS_MAX = 300
"""More partitions than this have no place in an event: a stream that broke begins again."""
ROWS_OF_AN_EVENT = 200
FIELDS = ("start", "at", "partition", "key", "value", "header", "json", "regex", "case", "committed", "limit")
LAST_PLACE = "last-event-id"


async def messages(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    views = await request.admin.describe_topics([topic])
    form = {name: request.text(name) for name in FIELDS}
    wrong, status = "", 200
    try:
        wanted = wanted_by(request.query)
        SearchMatcher(wanted)
    except ConfigError as refused:
        wrong, status = str(refused), BAD_REQUEST
    query = urlencode({name: value for name, value in form.items() if value})
    return console.page(
        request,
        "messages.html",
        status,
        topic=views[topic],
        form=form,
        wrong=wrong,
        query=query,
        starts=STARTS,
        limits=LIMITS,
        is_tail=bool(request.text("tail")),
    )


async def search(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    """The search as a stream of events: `rows`, `progress`, and `done` at the end."""
    console.refuse_when_busy()
    wanted = wanted_by(request.query)
    ranges = await ranges_of(request.admin, topic, wanted)
    total = count(ranges)
    if place := request.headers.get(LAST_PLACE, ""):
        ranges = ranges_at(place, ranges)
    scan = TopicScan(
        request.admin.brokers, topic, ranges, wanted, console.masks.of(topic), console.decoder(topic), PREVIEW_BYTES
    )
    return StreamAnswer(_events(console, request, topic, scan, wanted, total, total - count(ranges)), MEDIA_TYPE)


async def _events(
    console: ConsoleContext,
    request: PageRequest,
    topic: str,
    scan: TopicScan,
    wanted: SearchWanted,
    total: int,
    before: int,
) -> AsyncIterator[bytes]:
    with console.search_slot():
        found, progress = 0, {"scanned": before, "total": total, "found": 0}
        yield event("progress", progress)
        try:
            async for news in searched(scan, wanted):
                found += len(news.records)
                progress = {"scanned": before + news.scanned, "total": total, "found": found}
                if news.records:
                    yield event("rows", rows_of(console, request, topic, news.records))
                is_small = news.left is not None and len(news.left) <= PLACE_PARTITIONS_MAX
                place = place_of(news.left) if is_small and news.left else ""
                yield event("progress", progress, place)
                if news.is_full:
                    yield event("done", {**progress, "why": "limit"})
                    return
        except MoldauError as failure:
            yield event("done", {**progress, "why": "error", "sentence": str(refusal_of(failure))})
            return
        yield event("done", {**progress, "why": "end"})


def rows_of(console: ConsoleContext, request: PageRequest, topic: str, records: list[ShownRecord]) -> bytes:
    """The rows of a table, as HTML."""
    rows = [RecordRow.of(one) for one in records]
    return console.page(request, "message_rows.html", topic_name=topic, rows=rows).body


async def export(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    """All hits, in the order of offsets, as a file."""
    console.refuse_when_busy()
    wanted = wanted_by({**request.query, "limit": ["1"]})
    kind = request.text("format", exporting.JSON_LINES)
    if kind not in exporting.MEDIA_TYPES:
        raise PageRefusal(BAD_REQUEST, "the format of an export is jsonl or csv")
    ranges = await ranges_of(request.admin, topic, wanted)
    in_order = SearchWanted(**{**vars(wanted), "start": OLDEST, "limit": 1_000})
    scan = TopicScan(
        request.admin.brokers, topic, ranges, in_order, console.masks.of(topic), console.decoder(topic), None
    )
    disposition = f'attachment; filename="{topic}.{kind}"'.encode()
    headers = [NOT_STORED, (b"content-disposition", disposition)]
    return StreamAnswer(_exported(console, topic, scan, kind), exporting.MEDIA_TYPES[kind], headers)


async def _exported(console: ConsoleContext, topic: str, scan: TopicScan, kind: str) -> AsyncIterator[bytes]:
    with console.search_slot():
        if kind == exporting.CSV:
            yield exporting.csv_head()
        async for step in steps(scan):
            if step.hits:
                is_csv = kind == exporting.CSV
                yield exporting.csv_lines(step.hits) if is_csv else exporting.json_lines(topic, step.hits)


async def tail(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    """New records as they come, as a stream of `rows`."""
    console.refuse_when_busy()
    wanted = wanted_by(request.query)
    ranges = await ranges_of(request.admin, topic, wanted)
    return StreamAnswer(
        _tailed(console, request, topic, wanted, {n: end for n, (_, end) in ranges.items()}), MEDIA_TYPE
    )


async def _tailed(
    console: ConsoleContext, request: PageRequest, topic: str, wanted: SearchWanted, ends: dict[int, int]
) -> AsyncIterator[bytes]:
    with console.search_slot():
        found = seen = 0
        follower = request.admin.follower(topic, ends, committed=wanted.committed)
        yield event("progress", {"scanned": 0, "total": 0, "found": 0})
        try:
            async for records, passed in follower.records(
                SearchMatcher(wanted), console.masks.of(topic), console.decoder(topic)
            ):
                found, seen = found + len(records), seen + passed
                for at in range(0, len(records), ROWS_OF_AN_EVENT):
                    part = records[at : at + ROWS_OF_AN_EVENT]
                    yield event("rows", rows_of(console, request, topic, part[::-1]))
                yield event("progress", {"scanned": seen, "total": seen, "found": found}) if passed else ALIVE
        except KafkaError as failure:
            yield event(
                "done", {"scanned": seen, "total": seen, "found": found, "why": "error", "sentence": str(failure)}
            )


async def record(console: ConsoleContext, request: PageRequest, topic: str, partition: str, offset: str) -> Answer:
    """One record as a whole."""
    number = whole_number("a partition", partition, 0, NUMBER_MAX)
    at = whole_number("an offset", offset, 0, OFFSET_MAX)
    one = await one_of(console, request, topic, number, at)
    template = "record_part.html" if request.is_fragment else "record.html"
    return console.page(
        request, template, topic_name=topic, record=one, key=content_of(one.key), value=content_of(one.value),
        headers=[(name, content_of(value)) for name, value in one.headers],
    )  # fmt: skip


async def one_of(console: ConsoleContext, request: PageRequest, topic: str, partition: int, offset: int) -> ShownRecord:
    """Raises `PageRefusal` if it is not there."""
    wanted = SearchWanted(start=OLDEST, partitions=frozenset([partition]))
    start, end = (await ranges_of(request.admin, topic, wanted)).get(partition, (0, 0))
    if start <= offset < end:
        scan = TopicScan(
            request.admin.brokers, topic, one_record(partition, offset), wanted, console.masks.of(topic),
            console.decoder(topic), None,
        )  # fmt: skip
        try:
            while (step := await scan.next()) is not None:
                if step.hits:
                    return step.hits[0]
        finally:
            await scan.end()
    raise PageRefusal(NOT_FOUND, f"partition {partition} of {topic} has no record at offset {offset}")
