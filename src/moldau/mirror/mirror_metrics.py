"""What a worker tells Prometheus, at `http://HOST:PORT/metrics` while it works."""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from moldau.metrics.families import OPEN_METRICS, TEXT, Family, counter, gauge, labels, one, text_of, wants_open_metrics
from moldau.metrics.text_server import HttpQuestion, HttpText, TextServer, plain
from moldau.mirror.counters import MirrorCounters
from moldau.mirror.foreign.board import Board
from moldau.mirror.latency import latency_families
from moldau.mirror.worker import MirrorWorker
from moldau.names import TopicPartition

PATH = "/metrics"
NO_PORT = -1
logger = logging.getLogger(__name__)


def families_of(worker: MirrorWorker, now_s: float) -> list[Family]:
    """Of a mirror in Moldau, at this time of the loop."""
    copies = worker.copying.copies
    counters: MirrorCounters = worker.copying.counters
    behind = {tp: copy.records_behind for tp, copy in copies.items() if copy.records_behind is not None}
    return [
        *_partitions(len(copies), behind),
        _stopped(worker.gauges.stopped),
        one(
            "moldau_mirror_followed_partitions",
            "Partitions that are fetched now: not those that pause, have stopped, or are compared first.",
            worker.gauges.followed,
        ),
        *latency_families({tp: copy.latency for tp, copy in copies.items()}, now_s),
        _refused(len(worker.refused)),
        counter("moldau_mirror_offsets", "Offsets appended to the mirrors.", [("", counters.appended_offsets)]),
        counter("moldau_mirror_bytes", "Bytes of batches appended to the mirrors.", [("", counters.appended_bytes)]),
        counter("moldau_mirror_fetches", "Answers of the source that had records.", [("", counters.fetches)]),
        counter("moldau_mirror_appends", "Batches of one answer taken by a mirror's leader.", [("", counters.appends)]),
        _pauses(counters.pauses),
    ]


def foreign_families(board: Board, lanes: int, refused: int, now_s: float) -> list[Family]:
    """Of a mirror in another Kafka, of a worker with that many lanes, which refuses that many topics."""
    return [
        *_partitions(len(board.positions_of.keys() | board.stopped.keys()), board.behind),
        _stopped(len(board.stopped)),
        *latency_families(board.latencies, now_s),
        one("moldau_mirror_lanes", "Lanes that this worker copies.", lanes),
        _refused(refused),
        counter("moldau_mirror_records", "Records copied.", [("", board.records)]),
        _pauses(board.pauses),
    ]


def _partitions(count: int, behind: Mapping[TopicPartition, int]) -> list[Family]:
    return [
        one("moldau_mirror_partitions", "Partitions that this worker copies.", count),
        gauge(
            "moldau_mirror_partition_offsets_behind",
            "Offsets that the mirror lacks: what a fail-over would lose, at most.",
            [(labels(topic=tp.topic, partition=tp.partition), left) for tp, left in sorted(behind.items())],
        ),
    ]


def _refused(count: int) -> Family:
    return one("moldau_mirror_refused_topics", "Topics that are wanted and not mirrored.", count)


def _pauses(count: int) -> Family:
    return counter("moldau_mirror_pauses", "Times that mirroring paused because of an error.", [("", count)])


def _stopped(count: int) -> Family:
    return one("moldau_mirror_stopped_partitions", "Partitions that are not mirrored, as the log says why.", count)


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
