"""The records of a topic: the form of a search, the search itself as a stream, its export, and one record."""

import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import urlencode

from moldau.console.asking.ranges import one_record, ranges_of
from moldau.console.context import ConsoleContext
from moldau.console.pages.record_rows import HEADERS_MAX, RecordRow, content_of, header_of
from moldau.console.search import exporting
from moldau.console.search.decoding import WrittenWith
from moldau.console.search.matching import SearchMatcher
from moldau.console.search.records import PREVIEW_BYTES, ShownRecord
from moldau.console.search.rounds import count, place_of, ranges_at
from moldau.console.search.scanning import DamagedRange, ScanStep, TopicScan
from moldau.console.search.searching import searched, steps
from moldau.console.search.wanted import LIMITS, OLDEST, STARTS, SearchWanted, wanted_by
from moldau.console.web.answers import NOT_STORED, Answer, StreamAnswer
from moldau.console.web.events import ALIVE, MEDIA_TYPE, event
from moldau.console.web.refusing import BAD_GATEWAY, BAD_REQUEST, NOT_FOUND, PageRefusal
from moldau.console.web.requests import PageRequest, whole_number
from moldau.console.web.slots import StreamSlots
from moldau.errors import ConfigError, KafkaError, MoldauError

NUMBER_MAX, OFFSET_MAX = 2**31 - 1, 2**63 - 2
PLACE_PARTITIONS_MAX = 300
"""More partitions than this have no place in an event: a stream that broke begins again."""
ROWS_OF_AN_EVENT = 200
LEFT_OUT_SHOWN = 20
"""Partitions that a stream names as left out."""
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
    """The search as a stream of events: `rows`, `progress`, `damaged` for what cannot be read, at the end `done`."""
    try:
        return await _search(console, request, topic)
    except MoldauError as failure:
        return _told(request, failure)


def _told(request: PageRequest, failure: MoldauError) -> Answer:
    """A failure as a stream for scripts, which cannot read another answer. Raises it for everybody else."""
    if MEDIA_TYPE.partition(";")[0] not in request.headers.get("accept", ""):
        raise failure

    async def pieces() -> AsyncIterator[bytes]:
        yield _failed(request, failure)

    return StreamAnswer(pieces(), MEDIA_TYPE)


async def _search(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    console.searches.refuse_when_full()
    wanted = wanted_by(request.query)
    found = await ranges_of(request.admin, topic, wanted)
    ranges, total = found.of, count(found.of)
    if place := request.headers.get(LAST_PLACE, ""):
        ranges = ranges_at(place, ranges)
    scan = TopicScan(
        request.admin.brokers, topic, ranges, wanted, console.masks.of(topic), console.decoder, PREVIEW_BYTES
    )
    events = _events(console, request, topic, scan, wanted, total, total - count(ranges))
    pieces = _preceded(found.left_out, events)
    return StreamAnswer(_in_slot(request, console.searches, pieces), MEDIA_TYPE)


async def _in_slot(
    request: PageRequest, slots: StreamSlots, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """The events, while the stream has a slot, if it gets one."""
    try:
        with slots.taken():
            async with contextlib.aclosing(pieces) as each:
                async for piece in each:
                    yield piece
    except PageRefusal as full:
        yield _failed(request, full)


async def _preceded(left_out: list[str], pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The events, and before them what is left out."""
    async with contextlib.aclosing(pieces) as each:
        for sentence in left_out[:LEFT_OUT_SHOWN]:
            yield event("damaged", {"sentence": sentence, "offsets": 0})
        async for piece in each:
            yield piece


def _failed(request: PageRequest, failure: MoldauError, **progress: int) -> bytes:
    """The last event of a stream that failed."""
    none = {"scanned": 0, "total": 0, "found": 0}
    return event("done", {**none, **progress, "why": "error", "sentence": request.said(failure)})


def _damaged(damaged: DamagedRange) -> bytes:
    """The event that names what a stream leaves out."""
    return event("damaged", {"sentence": str(damaged)[:500], "offsets": damaged.last + 1 - damaged.first})


async def _events(
    console: ConsoleContext,
    request: PageRequest,
    topic: str,
    scan: TopicScan,
    wanted: SearchWanted,
    total: int,
    before: int,
) -> AsyncGenerator[bytes, None]:
    found, progress = 0, {"scanned": before, "total": total, "found": 0}
    yield event("progress", progress)
    try:
        async for news in searched(scan, wanted):
            found += len(news.records)
            progress = {"scanned": before + news.scanned, "total": total, "found": found}
            if news.damaged is not None:
                yield _damaged(news.damaged)
            if news.records:
                yield event("rows", rows_of(console, request, topic, news.records))
            is_small = news.left is not None and len(news.left) <= PLACE_PARTITIONS_MAX
            place = place_of(news.left) if is_small and news.left else ""
            yield event("progress", progress, place)
            if news.is_full:
                yield event("done", {**progress, "why": "limit"})
                return
    except MoldauError as failure:
        yield _failed(request, failure, **progress)
        return
    yield event("done", {**progress, "why": "end"})


def rows_of(console: ConsoleContext, request: PageRequest, topic: str, records: list[ShownRecord]) -> bytes:
    """The rows of a table, as HTML."""
    rows = [RecordRow.of(one) for one in records]
    return console.page(request, "message_rows.html", topic_name=topic, rows=rows).body


async def export(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    """All hits, in the order of offsets, as a file."""
    console.searches.refuse_when_full()
    wanted = wanted_by({**request.query, "limit": ["1"]})
    kind = request.text("format", exporting.JSON_LINES)
    if kind not in exporting.MEDIA_TYPES:
        raise PageRefusal(BAD_REQUEST, "the format of an export is jsonl or csv")
    ranges = await ranges_of(request.admin, topic, wanted)
    if ranges.left_out:
        raise PageRefusal(BAD_GATEWAY, f"{ranges.left_out[0]}. Try again later, or export the other partitions.")
    in_order = SearchWanted(**{**vars(wanted), "start": OLDEST, "limit": 1_000})
    scan = TopicScan(request.admin.brokers, topic, ranges.of, in_order, console.masks.of(topic), console.decoder, None)
    first = await _begun(scan)
    # Kafka allows nothing else in names, but the console shows other clusters too.
    name = re.sub(r"[^a-zA-Z0-9._-]", "_", topic)[:200]
    disposition = f'attachment; filename="{name}.{kind}"'.encode()
    headers = [NOT_STORED, (b"content-disposition", disposition)]
    pieces = _exported(console, topic, scan, first, kind)
    return StreamAnswer(pieces, exporting.MEDIA_TYPES[kind], headers, end=scan.end)


async def _begun(scan: TopicScan) -> ScanStep | None:
    """The first step of an export: a refusal is a page, and not a file that breaks off. Raises `MoldauError`."""
    try:
        return await scan.next()
    except BaseException:
        await scan.end()
        raise


async def _exported(
    console: ConsoleContext, topic: str, scan: TopicScan, first: ScanStep | None, kind: str
) -> AsyncIterator[bytes]:
    with console.searches.taken():
        if kind == exporting.CSV:
            yield exporting.csv_head()
        async for step in steps(scan, first):
            if step.hits:
                is_csv = kind == exporting.CSV
                yield exporting.csv_lines(step.hits) if is_csv else exporting.json_lines(topic, step.hits)


async def tail(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    """New records as they come, as a stream of `rows`, with `damaged` for what cannot be read."""
    try:
        return await _tail(console, request, topic)
    except MoldauError as failure:
        return _told(request, failure)


async def _tail(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    console.tails.refuse_when_full()
    wanted = wanted_by(request.query)
    ranges = await ranges_of(request.admin, topic, wanted)
    tailed = _tailed(console, request, topic, wanted, {n: end for n, (_, end) in ranges.of.items()})
    pieces = _preceded(ranges.left_out, tailed)
    return StreamAnswer(_in_slot(request, console.tails, pieces), MEDIA_TYPE)


async def _tailed(
    console: ConsoleContext, request: PageRequest, topic: str, wanted: SearchWanted, ends: dict[int, int]
) -> AsyncGenerator[bytes, None]:
    found = seen = 0
    follower = request.admin.follower(topic, ends, committed=wanted.committed)
    yield event("progress", {"scanned": 0, "total": 0, "found": 0})
    try:
        async for step in follower.steps(SearchMatcher(wanted), console.masks.of(topic), console.decoder):
            found, seen = found + len(step.hits), seen + step.passed
            if step.damaged is not None:
                yield _damaged(step.damaged)
            for at in range(0, len(step.hits), ROWS_OF_AN_EVENT):
                part = step.hits[at : at + ROWS_OF_AN_EVENT]
                yield event("rows", rows_of(console, request, topic, part[::-1]))
            yield event("progress", {"scanned": seen, "total": seen, "found": found}) if step.passed else ALIVE
    except KafkaError as failure:
        yield _failed(request, failure, scanned=seen, total=seen, found=found)


async def record(console: ConsoleContext, request: PageRequest, topic: str, partition: str, offset: str) -> Answer:
    """One record as a whole."""
    number = whole_number("a partition", partition, 0, NUMBER_MAX)
    at = whole_number("an offset", offset, 0, OFFSET_MAX)
    one, schemas = await one_of(console, request, topic, number, at)
    template = "record_part.html" if request.is_fragment else "record.html"
    return console.page(
        request, template, topic_name=topic, record=one, key=content_of(one.key), value=content_of(one.value),
        headers=[(name, header_of(value)) for name, value in one.headers[:HEADERS_MAX]], schemas=schemas,
        more_headers=max(len(one.headers) - HEADERS_MAX, 0),
    )  # fmt: skip


async def one_of(
    console: ConsoleContext, request: PageRequest, topic: str, partition: int, offset: int
) -> tuple[ShownRecord, dict[str, str]]:
    """The record, and the schemas by which its key and value were decoded. Raises `PageRefusal` if it is not there."""
    noting = None if console.decoder is None else WrittenWith(console.decoder)
    wanted = SearchWanted(start=OLDEST, partitions=frozenset([partition]))
    ranges = await ranges_of(request.admin, topic, wanted)
    if ranges.left_out:
        raise PageRefusal(BAD_GATEWAY, ranges.left_out[0])
    start, end = ranges.of.get(partition, (0, 0))
    if start <= offset < end:
        scan = TopicScan(
            request.admin.brokers, topic, one_record(partition, offset), wanted, console.masks.of(topic), noting, None,
        )  # fmt: skip
        try:
            while (step := await scan.next()) is not None:
                if step.damaged is not None:
                    raise PageRefusal(BAD_GATEWAY, str(step.damaged))
                if step.hits:
                    return step.hits[0], {} if noting is None else noting.schemas
        finally:
            await scan.end()
    raise PageRefusal(NOT_FOUND, f"partition {partition} of {topic} has no record at offset {offset}")
