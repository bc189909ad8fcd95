"""A producer with an audit topic reports what was acknowledged: every way to send, transactions, failures, restarts."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import moldau
from harness.patience import wait_until
from harness.proxy import Proxy
from moldau import Producer, aio, testing
from moldau.client.fetching import EARLIEST, LATEST, list_offsets, read_columns
from moldau.client.monitoring import InvalidEvent, MonitoringEvent, from_json, to_json
from moldau.names import TopicPartition
from moldau.records.columns import record_hash
from moldau.records.digests import Digest, total

Record = tuple[bytes | None, bytes | None]
NOON_MS = 1_767_268_800_000


@pytest.fixture
def audit_topic(fresh: Callable[[], str]) -> str:
    return fresh()


def events_of(bootstrap: str, audit_topic: str) -> list[MonitoringEvent]:
    tp = TopicPartition(audit_topic, 0)
    first, last = (list_offsets(bootstrap, {tp: where})[tp] for where in (EARLIEST, LATEST))
    if first == last:
        return []
    batches = list(read_columns(bootstrap, *tp, first, last, isolation_level="read_uncommitted"))
    return [from_json(value) for batch in batches for value in batch.column("value").to_pylist()]


def reported(bootstrap: str, audit_topic: str, topic: str) -> Digest:
    """As an audit counts: an event that stands there twice, with the same instance and sequence, counts once."""
    events = {(event.instance, event.sequence): event for event in events_of(bootstrap, audit_topic)}
    return total(event.digest for event in events.values() if event.topic == topic)


def assert_reported(bootstrap: str, audit_topic: str, topic: str, records: list[Record]) -> None:
    found = reported(bootstrap, audit_topic, topic)
    hashes = sum(record_hash(key, value) for key, value in records) & (1 << 64) - 1
    assert (found.records, found.hash_sum) == (len(records), hashes)


@pytest.mark.parametrize("settings", [{}, {"compression_type": "lz4"}, {"acks": 1}, {"acks": 0}])
def test_everything_that_was_sent_is_reported_by_close(
    bootstrap: str, topic: str, audit_topic: str, settings: dict[str, Any]
) -> None:
    rows: list[Record] = [(b"t%d" % n, b"table %d" % n) for n in range(5_000)]
    values: list[Record] = [(None, b"many %d" % n) for n in range(100)]
    single: list[Record] = [(b"k", b"one"), (None, b""), (b"", None), (None, None)]
    with Producer(bootstrap, audit_topic=audit_topic, client_id="shop", **settings) as producer:
        for key, value in single:
            producer.send(topic, value, key, headers={"a": "b"})
        producer.send_many(topic, [value for _, value in values])
        producer.send_table(topic, pa.table({"key": [key for key, _ in rows], "value": [value for _, value in rows]}))
    assert_reported(bootstrap, audit_topic, topic, [*single, *values, *rows])
    events = events_of(bootstrap, audit_topic)
    assert [event.sequence for event in events] == list(range(len(events)))
    assert {(event.server, event.producer) for event in events} == {(socket.gethostname(), "shop")}
    assert len({event.instance for event in events}) == 1
    assert [event.closed for event in events] == [False] * (len(events) - 1) + [True]


def test_records_are_reported_in_the_windows_of_their_own_times(bootstrap: str, topic: str, audit_topic: str) -> None:
    with Producer(bootstrap, audit_topic=audit_topic, audit_window_ms=60_000) as producer:
        for second in range(0, 300, 10):
            producer.send(topic, b"v", timestamp_ms=NOON_MS + 1_000 * second)
        producer.send(topic, b"now")
    events = [event for event in events_of(bootstrap, audit_topic) if event.topic]
    old, new = events[:-1], events[-1]
    assert [event.window_start_ms for event in old] == [NOON_MS + 60_000 * minute for minute in range(5)]
    assert {event.digest.records for event in old} == {6} == {event.digest.late for event in old}
    assert new.digest.late == 0 and abs(new.window_start_ms - time.time() * 1000) < 24 * 3_600_000


def test_the_producer_for_asyncio_reports_too(bootstrap: str, topic: str, audit_topic: str) -> None:
    async def send() -> None:
        async with aio.Producer(bootstrap, audit_topic=audit_topic) as producer:
            await producer.send(topic, b"one", b"k")
            await producer.send_many(topic, [b"two", b"three"])

    asyncio.run(send())
    assert_reported(bootstrap, audit_topic, topic, [(b"k", b"one"), (None, b"two"), (None, b"three")])


def test_counts_are_sent_while_the_producer_runs(bootstrap: str, topic: str, audit_topic: str) -> None:
    with Producer(bootstrap, audit_topic=audit_topic, audit_interval_ms=100) as producer:
        producer.send(topic, b"v").result()
        assert wait_until(lambda: exists(bootstrap, audit_topic) and reported(bootstrap, audit_topic, topic).records)
        assert not any(event.closed for event in events_of(bootstrap, audit_topic))
        producer.send(topic, b"w").result()
    assert_reported(bootstrap, audit_topic, topic, [(None, b"v"), (None, b"w")])


def exists(bootstrap: str, topic: str) -> bool:
    with moldau.Admin(bootstrap) as admin:
        return topic in admin.list_topics()


def test_only_committed_transactions_are_reported(
    bootstrap: str, topic: str, audit_topic: str, fresh: Callable[[], str]
) -> None:
    with Producer(bootstrap, audit_topic=audit_topic, transactional_id=fresh()) as producer:
        with producer.transaction():
            producer.send(topic, b"kept")
        producer.begin_transaction()
        producer.send(topic, b"dropped").result()
        producer.abort_transaction()
        with producer.transaction():
            producer.send_many(topic, [b"kept", b"too"])
        producer.begin_transaction()
        producer.send(topic, b"open at the end").result()
    assert_reported(bootstrap, audit_topic, topic, [(None, b"kept"), (None, b"kept"), (None, b"too")])


def test_records_that_failed_are_not_reported(bootstrap: str, topic: str, audit_topic: str) -> None:
    with Producer(bootstrap, audit_topic=audit_topic) as producer:
        producer.send(topic, b"small")
        too_large = producer.send(topic, b"x" * 2_000_000)
        assert too_large.exception() is not None
    assert_reported(bootstrap, audit_topic, topic, [(None, b"small")])


def test_a_split_batch_is_reported_once(bootstrap: str, topic: str, audit_topic: str) -> None:
    with moldau.Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1, replication_factor=1, configs={"max.message.bytes": "4000"})
    values = [b"%03d" % n * 100 for n in range(100)]
    with Producer(bootstrap, audit_topic=audit_topic, linger_ms=200) as producer:
        for value in values:
            producer.send(topic, value)
    assert_reported(bootstrap, audit_topic, topic, [(None, value) for value in values])


def test_reports_wait_for_a_broker_that_is_away_and_count_once(
    proxied: testing.Broker, proxy: Proxy, topic: str, audit_topic: str
) -> None:
    with Producer(proxy.address, audit_topic=audit_topic, audit_interval_ms=100) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number)
            producer.flush()
            if number % 5 == 4:
                proxy.cut()  # `close` sends again what is not acknowledged yet, with the same sequence
    assert_reported(proxied.address, audit_topic, topic, [(None, b"%d" % number) for number in range(20)])


def test_with_log_append_time_the_brokers_time_counts(bootstrap: str, topic: str, audit_topic: str) -> None:
    with moldau.Admin(bootstrap) as admin:
        configs = {"message.timestamp.type": "LogAppendTime"}
        admin.create_topic(topic, partitions=1, replication_factor=1, configs=configs)
    with Producer(bootstrap, audit_topic=audit_topic) as producer:
        delivered = producer.send(topic, b"v", timestamp_ms=NOON_MS).result()
    event = events_of(bootstrap, audit_topic)[0]
    assert 0 <= delivered.timestamp_ms - event.window_start_ms < 60_000


def test_headers_say_when_and_where_a_record_was_made(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, audit_headers=True) as producer:
        producer.send(topic, b"one", timestamp_ms=NOON_MS, headers={"own": "1"})
        producer.send(topic, b"of the same batch")
        producer.send_table(topic, pa.table({"value": [b"two"], "timestamp": [NOON_MS + 1]}))
        producer.send(topic, b"now")
        sent = producer.send_many(topic, [b"many"])
        sent.result()
    rows = [row for batch in read_columns(bootstrap, topic, 0, 0, 5) for row in batch.to_pylist()]
    server = ("audit.server", socket.gethostname().encode())
    found = {row["value"]: [(header["key"], header["value"]) for header in row["headers"]] for row in rows}
    assert found[b"one"] == [("own", b"1"), ("audit.timestamp", b"%d" % NOON_MS), server]
    assert found[b"two"] == [("audit.timestamp", b"%d" % (NOON_MS + 1)), server]
    for row in rows:
        at = int(dict(found[row["value"]])["audit.timestamp"])
        assert at == int(row["timestamp"].timestamp() * 1000)


def test_without_the_setting_nothing_is_reported(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        assert producer._core._audit is None and producer._core.interceptors is None
        producer.send(topic, b"v")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'"text"',
        b"\xff",
        b"[" * 100_000,
        b'{"format": 2}',
        b'{"format": 1}',
        b'{"format": 3}',
    ],
    ids=lambda data: repr(data[:20]),
)
def test_what_is_not_an_event_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidEvent):
        from_json(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [("count", -1), ("count", 1.5), ("count", True), ("hash_sum", "x"), ("hash_sum", "1" * 17), ("delays", [1] * 99),
     ("delays", 3), ("delays", [[1, 2, 3]]), ("delays", [[-1, 2]]), ("delays", [[1, 2]] * 2_000),
     ("window_start_ms", 1 << 70), ("sent_ms", "1"), ("started_ms", None),
     ("window_ms", 0), ("sequence", "1"), ("topic", None), ("late", 1 << 70)],
)  # fmt: skip
def test_an_event_with_a_wrong_field_is_refused(field: str, value: Any) -> None:
    event = MonitoringEvent("id", 3, "host", "shop", "orders", NOON_MS, 60_000, Digest(1, 2, 0, 5, ((5, 1),)), NOON_MS,
                            started_ms=NOON_MS)  # fmt: skip
    assert from_json(to_json(event)) == event
    tree = json.loads(to_json(event))
    tree[field] = value
    with pytest.raises(InvalidEvent):
        from_json(json.dumps(tree).encode())


def test_events_of_earlier_producers_are_read() -> None:
    """What the first format had: delays by powers of two, and no start."""
    earlier = (
        b'{"format": 1, "instance": "6f0c", "sequence": 12, "server": "web-3", "producer": "shop", "topic": "orders",'
        b' "window_start_ms": 1767268800000, "window_ms": 60000, "count": 512, "hash_sum": "9f86d081884c7d65",'
        b' "late": 0, "delay_ms_max": 7, "delays": [0, 3, 200, 309], "sent_ms": 1767268805000, "closed": false}'
    )
    event = from_json(earlier)
    assert event.digest == Digest(512, 0x9F86D081884C7D65, 0, 7, ((1, 3), (3, 200), (7, 309)))
    assert event.started_ms is None and (event.digest.delay_ms(0.1), event.digest.delay_ms(0.9)) == (3, 7)
    with pytest.raises(InvalidEvent):
        from_json(earlier.replace(b"[0, 3,", b"[0," * 40 + b"[3,"))


def test_delays_of_other_buckets_than_ours_are_rounded_up_to_ours() -> None:
    event = MonitoringEvent("id", 0, "host", "shop", "orders", NOON_MS, 60_000, Digest(3), NOON_MS, started_ms=NOON_MS)
    tree = {**json.loads(to_json(event)), "delays": [[1_001, 1], [70, 1], [1_000, 1]]}
    assert from_json(json.dumps(tree).encode()).digest.delays == ((71, 1), (1_007, 2))
