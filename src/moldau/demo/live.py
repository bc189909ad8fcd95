"""The replay, and loads beside it: a thread sends events into topics while Spark loads what has arrived, load by load.

`Replay` produces every event with its key and event time, and counts what brokers acknowledged. `follow` runs loads
until one has begun after the end of the replay, so that it has everything. Both note their times in a `Timeline`.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from moldau.client.producing.producer import Producer
from moldau.demo import audit
from moldau.demo.audit import Count
from moldau.demo.flights import Events
from moldau.demo.timeline import Timeline, VisibleOffsets, spans_of
from moldau.names import TopicPartition
from moldau.pipeline.loading.settings import Loaded
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.records.digests import MASK

AUDIT_TOPIC = "_audit"
AUDIT_WINDOW_MS = 24 * 3600 * 1000
CHUNK = 4096
PAUSE_SECONDS = 0.2
"""How long a load that found nothing waits for the replay."""

Counts = dict[str, Count]


class Replay:
    """Produces the topics' events, one topic after the other; `stop` ends it early. At the end it calls `settled`,
    which returns when all is where it is loaded from."""

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[Events],
        timeline: Timeline,
        advance: Callable[[int], None],
        settled: Callable[[], None] = lambda: None,
    ):
        self._bootstrap = bootstrap
        self._topics = topics
        self._timeline = timeline
        self._advance = advance
        self._settled = settled
        self._stopped = threading.Event()

    def run(self) -> Counts:
        """The acknowledged records by topic and month. The producer reports to the audit's topic."""
        with Producer(
            self._bootstrap, compression_type="lz4", linger_ms=20, client_id="demo", audit_topic=AUDIT_TOPIC,
            audit_window_ms=AUDIT_WINDOW_MS,
        ) as producer:  # fmt: skip
            counts = {events.topic: self._produce(producer, events) for events in self._topics}
        self._settled()
        return counts

    def stop(self) -> None:
        self._stopped.set()

    def _produce(self, producer: Producer, events: Events) -> Count:
        months = Counter[int]()
        records = hashes = 0
        for chunk in events.columns.to_batches(max_chunksize=CHUNK):
            if self._stopped.is_set():
                break
            keys, values, times, month = (chunk.column(name).to_pylist() for name in chunk.schema.names)
            began = time.monotonic()
            sent = [
                producer.send(events.topic, value, key, timestamp_ms=at)
                for key, value, at in zip(keys, values, times, strict=True)
            ]
            producer.flush()
            places = [delivery.result() for delivery in sent]
            self._timeline.spans += spans_of(
                [(TopicPartition(place.topic, place.partition), place.offset) for place in places],
                began, time.monotonic(),
            )  # fmt: skip
            records += len(places)
            months.update(number for number in month if number is not None)
            hashes += audit.hash_sum([chunk])
            self._advance(len(places))
        return Count(records, dict(sorted(months.items())), hashes & MASK)


def follow(
    replay: Replay,
    load: Callable[[], Loaded],
    warehouse: Warehouse,
    partitions: Sequence[TopicPartition],
    timeline: Timeline,
) -> Counts:
    """Run the replay, and loads until everything is loaded. Returns what was produced. If a load fails, the replay is
    stopped."""
    timeline.began = time.monotonic()
    with ThreadPoolExecutor(1, "replay") as threads:
        produced: Future[Counts] = threads.submit(replay.run)
        try:
            over = False
            while not over:
                over = produced.done()
                if load().records:
                    at = time.monotonic()
                    timeline.commits.append(VisibleOffsets(at, _offsets(warehouse, partitions)))
                elif not over:
                    wait([produced], PAUSE_SECONDS)
        finally:
            replay.stop()
    return produced.result()


def _offsets(warehouse: Warehouse, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The next offset of each partition in the tables of the warehouse."""
    tables = {topic: warehouse.table(topic) for topic in {tp.topic for tp in partitions}}
    offsets: dict[TopicPartition, int] = {}
    for topic, table in tables.items():
        if table is not None:
            offsets.update(table.offsets([tp for tp in partitions if tp.topic == topic]))
    return offsets
