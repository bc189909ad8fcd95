"""What a worker tells Prometheus, at `http://HOST:PORT/metrics` while it works."""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from moldau.metrics.families import OPEN_METRICS, TEXT, Family, counter, gauge, labels, one, text_of, wants_open_metrics
from moldau.metrics.text_server import HttpQuestion, HttpText, TextServer, plain
from moldau.mirror.counters import MirrorCounters
from moldau.mirror.foreign.board import Board
from moldau.mirror.worker import MirrorWorker
from moldau.names import TopicPartition

PATH = "/metrics"
NO_PORT = -1
logger = logging.getLogger(__name__)


def families_of(worker: MirrorWorker) -> list[Family]:
    """Of a mirror in Moldau."""
    copies = worker.copying.copies
    counters: MirrorCounters = worker.copying.counters
    return [
        *_partitions({tp: copy.records_behind or 0 for tp, copy in copies.items()}),
        _stopped(sum(bool(copy.stopped) for copy in copies.values())),
        one(
            "moldau_mirror_followed_partitions",
            "Partitions that are fetched now: not those that pause, have stopped, or are compared first.",
            worker.gauges.followed,
        ),
        one("moldau_mirror_refused_topics", "Topics that are wanted and not mirrored.", len(worker.refused)),
        counter("moldau_mirror_offsets", "Offsets appended to the mirrors.", [("", counters.appended_offsets)]),
        counter("moldau_mirror_bytes", "Bytes of batches appended to the mirrors.", [("", counters.appended_bytes)]),
        counter("moldau_mirror_fetches", "Answers of the source that had records.", [("", counters.fetches)]),
        counter("moldau_mirror_appends", "Batches of one answer taken by a mirror's leader.", [("", counters.appends)]),
        counter("moldau_mirror_pauses", "Times that a partition paused because of an error.", [("", counters.pauses)]),
    ]


def foreign_families(board: Board) -> list[Family]:
    """Of a mirror in another Kafka."""
    return [
        *_partitions(board.behind),
        _stopped(len(board.stopped)),
        counter("moldau_mirror_records", "Records copied.", [("", board.records)]),
    ]


def _partitions(behind: Mapping[TopicPartition, int]) -> list[Family]:
    return [
        one("moldau_mirror_partitions", "Partitions that this worker copies.", len(behind)),
        gauge(
            "moldau_mirror_partition_offsets_behind",
            "Offsets that the mirror lacks: what a fail-over would lose, at most.",
            [(labels(topic=tp.topic, partition=tp.partition), count) for tp, count in sorted(behind.items())],
        ),
    ]


def _stopped(count: int) -> Family:
    return one("moldau_mirror_stopped_partitions", "Partitions that are mirrored no longer: see the log.", count)


@contextlib.asynccontextmanager
async def told_to_prometheus(host: str, port: int, families: Callable[[], Iterable[Family]]) -> AsyncIterator[int]:
    """Listen meanwhile; yields the port (0: a free one). `NO_PORT`: do not. Raises `CannotListen`."""
    if port == NO_PORT:
        yield NO_PORT
        return

    async def answer(question: HttpQuestion) -> HttpText:
        if question.path != PATH:
            return plain(404, f"the metrics are at {PATH}")
        open_metrics = wants_open_metrics(question.headers.get("accept", ""))
        return HttpText(200, OPEN_METRICS if open_metrics else TEXT, text_of(families(), open_metrics))

    server = TextServer(answer)
    await server.start(host, port)
    try:
        logger.info("metrics are at http://%s:%d%s", host or "*", server.port, PATH)
        yield server.port
    finally:
        await server.stop()
