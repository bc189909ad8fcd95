"""The endpoint that Prometheus scrapes: `GET /metrics` on `metrics.port`.

A scrape reads the broker on the loop, in turns (`collecting`), and makes the text in the executor. One scrape goes on
at a time, and all that wait for the next one share it. The counters beside the hot path cost the same whether anybody
scrapes or not.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qs

import cramjam

from moldau.metrics.collecting import Collecting, MeasuredParts
from moldau.metrics.exporter_names import exporter_families
from moldau.metrics.families import OPEN_METRICS, TEXT, TOTAL, Family, text_of, wants_open_metrics
from moldau.metrics.jmx_names import jmx_families
from moldau.metrics.kminion_names import kminion_families
from moldau.metrics.loop_watch import LoopWatch
from moldau.metrics.own_names import own_families
from moldau.metrics.process_numbers import process_numbers
from moldau.metrics.snapshot import Snapshot
from moldau.metrics.text_server import HttpQuestion, HttpText, TextServer, plain
from moldau.net.measured import RequestTimes
from moldau.runtime import Runtime
from moldau.tasks import to_its_end
from moldau.version import VERSION

logger = logging.getLogger(__name__)

PATH = "/metrics"
KAFKA, KMINION = "kafka", "kminion"
NAMES = "name[]"
"""In a query: the families that are wanted, as Prometheus' own clients take it."""
OF_REQUESTS = frozenset(
    (
        "moldau_request_duration_seconds",
        "moldau_loop_delay_seconds",
        "moldau_traffic_records_in_total",
        "moldau_traffic_bytes_in_total",
        "moldau_traffic_bytes_out_total",
    )
)
"""Families for which no partition and no group is looked at."""
ALL: frozenset[str] = frozenset()
GZIP_LEVEL = 1
"""A scrape of 10,000 partitions is 13 MB of text that repeats itself: a higher level takes longer and saves little."""


class _Scraped(NamedTuple):
    """A scrape's format and families, when it began, and its text."""

    wanted: tuple[bool, frozenset[str]]
    began_s: float
    text: bytes


class MetricsEndpoint:
    """`port` is known after `start`. Belongs to the loop it is started on."""

    def __init__(self, parts: MeasuredParts, times: RequestTimes, runtime: Runtime, names: Collection[str]):
        self._families = partial(families_of, names=frozenset(names))
        self._runtime = runtime
        self._watch = LoopWatch(asyncio.get_running_loop())
        self._collecting = Collecting(parts, times, self._watch)
        self._server = TextServer(self._answer)
        self._scraping = asyncio.Lock()
        self._last_scrape_s = 0.0
        self._waiting = 0
        self._latest: _Scraped | None = None
        """The latest scrape, while somebody waits for one."""

    @property
    def port(self) -> int:
        return self._server.port

    async def start(self, host: str, port: int, undo: AsyncExitStack) -> None:
        """Raises `CannotListen`. `undo` ends it."""
        undo.push_async_callback(self._stop)
        await self._server.start(host, port)
        self._watch.start()
        logger.info("metrics are at http://%s:%d%s", host or "*", self.port, PATH)

    def abort(self) -> None:
        """Close it at once, as the end of the process would."""
        self._watch.stop()
        self._server.abort()

    async def _stop(self) -> None:
        self._watch.stop()
        await self._server.stop()

    async def _answer(self, question: HttpQuestion) -> HttpText:
        if question.path != PATH:
            return plain(404, f"the metrics are at {PATH}")
        open_metrics = wants_open_metrics(question.headers.get("accept", ""))
        names = frozenset(parse_qs(question.query).get(NAMES, ()))
        body = await self.scrape(open_metrics, names)
        headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"),)
        if accepts_gzip(question.headers.get("accept-encoding", "")):
            body = await to_its_end(self._runtime.run(partial(_zipped, body)))
            headers += (("Content-Encoding", "gzip"),)
        return HttpText(200, OPEN_METRICS if open_metrics else TEXT, body, headers)

    async def scrape(self, open_metrics: bool = False, names: frozenset[str] = ALL) -> bytes:
        """The whole exposition, or the families with these names; not compressed."""
        arrived_s, wanted = time.perf_counter(), (open_metrics, names)
        self._waiting += 1
        try:
            async with self._scraping:
                latest = self._latest
                # A scrape that began after this request came serves it too.
                if latest is None or latest.wanted != wanted or latest.began_s < arrived_s:
                    latest = self._latest = await self._scrape(*wanted)
                return latest.text
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._latest = None

    async def _scrape(self, open_metrics: bool, names: frozenset[str]) -> "_Scraped":
        began_s = time.perf_counter()
        is_whole = not names or not names <= OF_REQUESTS
        snapshot = await self._collecting.snapshot(is_whole=is_whole)
        snapshot.values["scrape_s"] = self._last_scrape_s
        text = await to_its_end(self._runtime.run(partial(_text, snapshot, self._families, open_metrics, names)))
        if is_whole:
            self._last_scrape_s = time.perf_counter() - began_s
        return _Scraped((open_metrics, names), began_s, text)


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header names gzip, and does not refuse it."""
    for part in header.lower().split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        if coding == "gzip":
            return not any(parameter.replace(" ", "").rstrip("0.") == "q=" for parameter in parameters)
    return False


def _zipped(body: bytes) -> bytes:
    return bytes(cramjam.gzip.compress(body, GZIP_LEVEL))


def _text(
    snapshot: Snapshot,
    families: Callable[[Snapshot], Iterable[Family]],
    open_metrics: bool,
    names: Collection[str],
) -> bytes:
    snapshot.process = process_numbers()
    found = families(snapshot)
    if names:
        found = (one for one in found if one.name in names or f"{one.name}{TOTAL}" in names)
    return text_of(found, open_metrics)


def families_of(snapshot: Snapshot, names: Collection[str]) -> Iterator[Family]:
    """`names`: what else than our own is told, as in `metrics.names`."""
    if KAFKA in names:
        yield from jmx_families(snapshot)
        yield from exporter_families(snapshot)
    if KMINION in names:
        yield from kminion_families(snapshot)
    yield from own_families(snapshot, VERSION)
