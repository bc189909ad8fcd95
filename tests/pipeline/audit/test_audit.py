"""The audit over real producers and two real clusters, into which faults are put: it names the window of each."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.pages import examples
from harness.patience import wait_until
from harness.tiers import sized
from moldau import Producer, read_table
from moldau.cli import main
from moldau.client.administration.admin import Admin
from moldau.client.fetching import read_columns
from moldau.demo.broker_process import running_broker
from moldau.pipeline.audit import naming
from moldau.pipeline.audit.auditing import AuditFailed, audit
from moldau.pipeline.audit.comparing import Difference
from moldau.pipeline.audit.reconciling import Books
from moldau.pipeline.audit.tiers import ClusterTier
from moldau.pipeline.audit.warehouse_tier import WarehouseTier
from moldau.pipeline.loading.load import load
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.runtime import RealClock
from tests import raw_transactions
from tests.pipeline.local_spark import LocalSpark

MINUTE_MS = 60_000
NOON_MS = 1_767_268_800_000
PARTITIONS = 3
MANY = sized(100_000, 200_000, 1_000_000)
LOST = MANY * 2 // 3
NewTopic = Callable[[], str]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mirror")
    with running_broker(folder / "data", folder / "broker.pid", folder / "broker.log") as address:
        yield address


@pytest.fixture
def both_topics(bootstrap: str, mirror: str, numbers: Iterator[int]) -> NewTopic:
    """Creates a topic of one name in both clusters."""

    def create() -> str:
        topic = f"audited-{next(numbers)}"
        for address in (bootstrap, mirror):
            with Admin(address) as admin:
                admin.create_topic(topic, partitions=PARTITIONS, replication_factor=1, configs={"retention.ms": "-1"})
        return topic

    return create


def orders(count: int, minutes: int) -> pa.Table:
    """Records with a key, spread evenly over these minutes."""
    step_ms = minutes * MINUTE_MS / count
    return pa.table(
        {
            "key": pa.array([b"%d" % (n % 1000) for n in range(count)], pa.binary()),
            "value": pa.array([b"order %d" % n for n in range(count)], pa.binary()),
            "timestamp": pa.array([NOON_MS + int(n * step_ms) for n in range(count)], pa.int64()),
        }
    )


def send(address: str, topic: str, rows: pa.Table, **settings: Any) -> None:
    with Producer(address, **settings) as producer:
        producer.send_table(topic, rows).result()


def copy(origin: str, mirror: str, topic: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """What a mirror does: read the topic and produce it again, changed as told."""
    rows = read_table(topic, bootstrap_servers=origin)
    times = rows["timestamp"].cast(pa.int64()).to_numpy() // 1000
    table = pa.table({"key": rows["key"], "value": rows["value"], "timestamp": pa.array(times, pa.int64())})
    send(mirror, topic, change(table))


def audited(bootstrap: str, mirror: str, topic: str, audit_topic: str, window_ms: int = MINUTE_MS) -> Books:
    tiers = [ClusterTier("origin", bootstrap), ClusterTier("mirror", mirror)]
    return audit(bootstrap, [topic], tiers, audit_topic=audit_topic, window_ms=window_ms)


def without(rows: pa.Table, place: int) -> pa.Table:
    return pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])


def window_of(rows: pa.Table, place: int) -> int:
    return int(rows["timestamp"][place].as_py()) // MINUTE_MS * MINUTE_MS


@pytest.mark.timeout(240)
def test_one_lost_record_of_many_is_named_by_its_window(bootstrap: str, mirror: str, both_topics: NewTopic) -> None:
    topic, reports = both_topics(), both_topics()
    send(bootstrap, topic, orders(MANY, 100), audit_topic=reports, compression_type="lz4")
    lost: list[int] = []
    place: list[tuple[int, int]] = []

    def lose(rows: pa.Table) -> pa.Table:
        assert rows.num_rows == MANY
        lost.append(window_of(rows, LOST))
        there = read_table(topic, bootstrap_servers=bootstrap).slice(LOST, 1).to_pylist()[0]
        assert there["value"] == rows["value"][LOST].as_py()
        place.append((there["partition"], there["offset"]))
        return without(rows, LOST)

    copy(bootstrap, mirror, topic, lose)
    books = audited(bootstrap, mirror, topic, reports)
    origin, copied = books.topics[0].tiers
    assert books.topics[0].expected.records == MANY and books.notes == []
    assert len(origin.windows) == 100 and not origin.wrong
    assert [(window.start_ms, window.state, window.difference) for window in copied.wrong] == [(lost[0], "missing", -1)]
    assert copied.wrong[0].differences == [Difference("missing", 1, "origin", place)]
    assert not books.complete


def test_one_doubled_record_and_one_lost_with_another_doubled_are_named(
    bootstrap: str, mirror: str, both_topics: NewTopic
) -> None:
    topic, reports = both_topics(), both_topics()
    send(bootstrap, topic, orders(10_000, 10), audit_topic=reports)
    expected: dict[int, str] = {}

    def change(rows: pa.Table) -> pa.Table:
        rows = rows.sort_by("timestamp")
        expected[window_of(rows, 10)] = "doubled"
        expected[window_of(rows, 5_000)] = "changed"
        assert window_of(rows, 5_000) == window_of(rows, 5_100)
        return pa.concat_tables([without(rows, 5_000), rows.slice(10, 1), rows.slice(5_100, 1)])

    copy(bootstrap, mirror, topic, change)
    wrong = audited(bootstrap, mirror, topic, reports).topics[0].tiers[1].wrong
    assert {window.start_ms: window.state for window in wrong} == expected
    kinds = {window.state: [(one.kind, one.records, one.tier) for one in window.differences] for window in wrong}
    doubled = ("doubled", 1, "mirror")
    assert kinds == {"doubled": [doubled], "changed": [("missing", 1, "origin"), doubled]}
    for difference in (one for window in wrong for one in window.differences if one.kind == "doubled"):
        ((partition, offset),) = difference.places
        (batch,) = read_columns(mirror, topic, partition, offset, offset + 1)
        copies = read_table(topic, bootstrap_servers=mirror)["value"].to_pylist().count(batch["value"][0].as_py())
        assert copies == 2


def test_a_record_that_the_origin_has_twice_is_named(bootstrap: str, new_topic: NewTopic) -> None:
    topic, reports = new_topic(), new_topic()
    rows = orders(1_000, 10)
    send(bootstrap, topic, rows, audit_topic=reports)
    send(bootstrap, topic, rows.slice(500, 1))  # no report: as after a retry without idempotence
    books = audit(bootstrap, [topic], [ClusterTier("origin", bootstrap)], audit_topic=reports, window_ms=MINUTE_MS)
    (sentence,) = books.sentences()
    assert "1 more than the 100 records acknowledged (repeated: partition " in sentence, sentence


def test_windows_with_more_records_than_are_compared_are_judged_all_the_same(
    bootstrap: str, mirror: str, both_topics: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "COMPARED_MAX", 100)
    topic, reports = both_topics(), both_topics()
    send(bootstrap, topic, orders(450, 4), audit_topic=reports)
    copy(bootstrap, mirror, topic, lambda rows: rows.sort_by("timestamp").slice(1, 448))
    copied = audited(bootstrap, mirror, topic, reports).topics[0].tiers[1]
    assert [(window.state, len(window.differences)) for window in copied.wrong] == [("missing", 0), ("missing", 0)]
    (note,) = copied.notes
    assert "2 wrong windows" in note and "no more than 100 records are compared: use a shorter --window." in note


def test_records_that_are_older_than_their_producer_are_replayed(
    bootstrap: str, new_topic: NewTopic, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, reports = new_topic(), new_topic()
    send(bootstrap, topic, orders(1_000, 10), audit_topic=reports)
    code, out, _ = run(["--topics", topic, "-b", bootstrap, "--audit-topic", reports], capsys)
    heads, cells = (line.split() for line in out.splitlines()[:2])
    assert code == 0 and (cells[heads.index("late")], cells[heads.index("replayed")]) == ("0", "1000")


def test_late_records_are_counted_and_their_window_is_still_complete(
    bootstrap: str, mirror: str, both_topics: NewTopic
) -> None:
    topic, reports = both_topics(), both_topics()
    hour_ms = 60 * MINUTE_MS  # nobody's "now" takes that long to arrive
    with Producer(bootstrap, audit_topic=reports, audit_window_ms=hour_ms) as producer:
        for number in range(50):
            producer.send(topic, b"now %d" % number)
        for number in range(3):
            producer.send(topic, b"late %d" % number, timestamp_ms=NOON_MS + number)
    copy(bootstrap, mirror, topic, lambda rows: rows)
    books = audited(bootstrap, mirror, topic, reports, hour_ms)
    assert books.complete
    tree = books.to_tree()["topics"][topic]
    assert (tree["acknowledged"], tree["late"], tree["late_windows"]) == (53, 3, ["2026-01-01T12:00:00Z"])
    assert tree["delay_ms"]["p50"] < hour_ms < tree["delay_ms"]["max"]


def test_a_tier_that_stopped_is_named_with_the_moment(bootstrap: str, mirror: str, both_topics: NewTopic) -> None:
    topic, reports = both_topics(), both_topics()
    send(bootstrap, topic, orders(10_000, 10), audit_topic=reports)
    copy(
        bootstrap, mirror, topic, lambda rows: rows.filter(pa.compute.less(rows["timestamp"], NOON_MS + 4 * MINUTE_MS))
    )
    books = audited(bootstrap, mirror, topic, reports)
    assert list(books.sentences()) == [
        f"{topic}: mirror has stopped: no record from 2026-01-01T12:04:00Z on, 6,000 missing."
    ]


def test_producers_that_restart_and_aborted_transactions_balance(
    bootstrap: str, mirror: str, both_topics: NewTopic
) -> None:
    topic, reports = both_topics(), both_topics()
    chance = random.Random(5)
    for run in range(3):
        send(bootstrap, topic, orders(chance.randrange(1, 2_000), 5), audit_topic=reports, client_id=f"shop-{run}")
        with Producer(bootstrap, audit_topic=reports, transactional_id=topic) as producer:
            for commits in (False, True):
                producer.begin_transaction()
                producer.send_table(topic, orders(100, 5))
                producer.flush()
                (producer.commit_transaction if commits else producer.abort_transaction)()
    copy(bootstrap, mirror, topic, lambda rows: rows)
    books = audited(bootstrap, mirror, topic, reports)
    assert books.complete and not books.notes


def test_records_behind_an_open_transaction_are_missing_until_it_ends_and_a_note_says_why(
    bootstrap: str, new_topic: NewTopic
) -> None:
    topic, reports = new_topic(), new_topic()
    send(bootstrap, topic, orders(10, 2), audit_topic=reports)
    still_open = raw_transactions.Producer(bootstrap, topic)
    still_open.write(topic)
    send(bootstrap, topic, orders(30, 2), audit_topic=reports)

    def audited() -> tuple[bool, int, list[str]]:
        origin = ClusterTier("origin", bootstrap)
        books = audit(bootstrap, [topic], [origin], audit_topic=reports, window_ms=MINUTE_MS)
        (tier,) = books.topics[0].tiers
        return not tier.wrong, tier.found, list(tier.notes)

    behind = "records from offset 10 to 40 cannot be read before it ends, and count as missing."
    assert audited() == (False, 10, [f"origin: a transaction is open in {topic}-0; {behind}"])
    still_open.end(commits=False)
    assert wait_until(lambda: audited() == (True, 40, []))
    still_open.close()


def test_a_mirror_that_writes_its_own_timestamps_is_compared_by_the_headers(
    bootstrap: str, mirror: str, both_topics: NewTopic
) -> None:
    topic, reports = both_topics(), both_topics()
    with Admin(mirror) as admin:
        admin.alter_topic_configs(topic, {"message.timestamp.type": "LogAppendTime"})
    send(bootstrap, topic, orders(3_000, 10), audit_topic=reports, audit_headers=True)
    rows = read_table(topic, bootstrap_servers=bootstrap)
    send(mirror, topic, rows.select(["key", "value", "timestamp", "headers"]))
    written = read_table(topic, bootstrap_servers=mirror)["timestamp"][0].as_py()
    assert written.timestamp() * 1000 > NOON_MS + 10 * MINUTE_MS
    assert audited(bootstrap, mirror, topic, reports).complete


def test_the_hash_is_sparks(spark: Any, bootstrap: str, new_topic: NewTopic) -> None:
    from pyspark.sql import functions as sf

    chance = random.Random(11)
    contents = [None, b"", *(chance.randbytes(chance.randrange(200)) for _ in range(500))]
    given = pa.table(
        {name: pa.array([chance.choice(contents) for _ in range(3_000)], pa.binary()) for name in ("key", "value")}
    )
    topic, reports = new_topic(), new_topic()
    send(bootstrap, topic, given, audit_topic=reports)
    books = audit(bootstrap, [topic], [ClusterTier("origin", bootstrap)], audit_topic=reports, window_ms=MINUTE_MS)
    rows = spark.read.format("moldau").option("bootstrapServers", bootstrap).option("subscribe", topic).load()
    hashed = rows.select(sf.sum(sf.xxhash64("key", "value").cast("decimal(38,0)")).alias("sum")).first()["sum"]
    assert int(hashed) % (1 << 64) == books.topics[0].expected.hash_sum


def test_the_example_of_the_page_is_audited_when_its_window_has_ended(
    bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = examples("audit.md")
    exec(compile(example.code.replace("localhost:9092", bootstrap), "docs/audit.md", "exec"), {})
    later_ms = RealClock().now_ms() + 60 * MINUTE_MS
    monkeypatch.setattr(RealClock, "now_ms", lambda _: later_ms)
    code, out, err = run(["--topics", "sales", "-b", bootstrap], capsys)
    assert code == 0 and not err and out.splitlines()[1].split()[:4] == ["sales", "origin", "1", "1"]


def test_a_warehouse_is_a_tier(
    spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, reports = new_topic(), new_topic()
    warehouse = Warehouse(tmp_path / "warehouse")
    send(bootstrap, topic, orders(5_000, 10), audit_topic=reports)
    with Producer(bootstrap, audit_topic=reports) as producer:
        producer.send(topic, b"the only one that was not replayed")
    load(lambda: spark, bootstrap, [topic], warehouse)
    options = ["--topics", topic, "-b", bootstrap, "--audit-topic", reports, "--warehouse", str(tmp_path / "warehouse")]
    code, out, _ = run([*options, "--json"], capsys)
    delays = json.loads(out)["topics"][topic]["tiers"]["warehouse"]["delay_ms"]
    assert code == 0 and 0 < delays["p50"] == delays["max"] < 3_600_000
    send(bootstrap, topic, orders(100, 10), audit_topic=reports)
    code, out, _ = run([*options, "--window", "1h"], capsys)
    missing = "warehouse, window 2026-01-01T12:00:00Z: 100 of 5,100 records missing: partition 0 offsets "
    assert code == 1 and missing in out and "and 95 more in origin." in out
    table = warehouse.table(topic)
    assert table is not None
    (tmp_path / "warehouse" / topic / table.files()[0].path).write_bytes(b"not Parquet")
    code, out, err = run(options, capsys)
    assert code and not out and "cannot be read" in err and len(err.splitlines()) == 1


def test_rows_that_were_removed_doubled_altered_or_added_by_hand_are_named(
    bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic, reports, spark = new_topic(), new_topic(), LocalSpark()
    send(bootstrap, topic, orders(100, 4), audit_topic=reports)
    load(lambda: cast("Any", spark), bootstrap, [topic], Warehouse(tmp_path))
    tiers = [ClusterTier("origin", bootstrap), WarehouseTier(str(tmp_path))]
    assert audit(bootstrap, [topic], tiers, audit_topic=reports, window_ms=MINUTE_MS).complete
    by_hand = DeltaTable(tmp_path / topic)
    rows = by_hand.to_pyarrow_table()
    doubled, added = (rows.filter(pa.compute.equal(rows["_offset"], offset)) for offset in (30, 90))
    for name in ("_partition", "_offset"):
        at = added.schema.get_field_index(name)
        added = added.set_column(at, added.schema.field(at), pa.nulls(1, added.schema.field(at).type))
    by_hand.delete("_offset = 3")
    write_deltalake(tmp_path / topic, pa.concat_tables([doubled, added]), mode="append")
    by_hand.update_incremental()
    by_hand.update(predicate="_offset = 60", updates={"value": "_key"})
    books = audit(bootstrap, [topic], tiers, audit_topic=reports, window_ms=MINUTE_MS)
    said = [sentence.partition("window 2026-01-01T12:0")[2] for sentence in books.sentences()]
    assert said == [
        "0:00Z: 1 of 25 records missing: partition 0 offset 3 in origin.",
        "1:00Z: 1 more than the 25 records acknowledged: partition 0 offset 30 in warehouse.",
        "2:00Z: 25 records as acknowledged, but with another sum of hashes (altered: partition 0 offset 60 in origin).",
        "3:00Z: 1 more than the 25 records acknowledged: 1 row without partition and offset in warehouse.",
    ]


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main.run(["pipeline", "audit", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_prints_the_audit_and_writes_a_page(
    bootstrap: str, mirror: str, both_topics: NewTopic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, reports = both_topics(), both_topics()
    send(bootstrap, topic, orders(1_000, 10), audit_topic=reports)
    copy(bootstrap, mirror, topic, lambda rows: rows)
    page = tmp_path / "audit.html"
    options = ["--topics", topic, "-b", bootstrap, "--mirror", mirror, "--audit-topic", reports]
    code, out, err = run([*options, "--page", str(page)], capsys)
    assert code == 0 and not err and "complete: every tier holds every acknowledged record" in out
    assert "Complete: each of the 1,000" in page.read_text()
    copy(bootstrap, mirror, topic, lambda rows: rows.slice(0, 1))
    code, out, _ = run([*options, "--window", "1h"], capsys)
    assert (
        code == 1
        and "mirror, window 2026-01-01T12:00:00Z: 1 more than the 1,000 records acknowledged: partition " in out
    )
    code, out, _ = run([*options, "--json"], capsys)
    assert code == 1 and json.loads(out)["topics"][topic]["tiers"]["mirror"]["windows"]["doubled"] == 1


def test_a_warehouse_that_does_not_exist_is_refused(
    bootstrap: str, new_topic: NewTopic, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    topic, reports = new_topic(), new_topic()
    with Producer(bootstrap, audit_topic=reports) as producer:
        producer.send(topic, b"in a window of a day, which has not ended")
    options = ["--topics", topic, "-b", bootstrap, "--audit-topic", reports, "--window", "1d"]
    code, out, err = run([*options, "--warehouse", str(tmp_path / "nowhere")], capsys)
    assert (code, out) == (1, "") and f"{tmp_path / 'nowhere'} does not exist" in err and len(err.splitlines()) == 1
    (tmp_path / "file").touch()
    code, out, err = run([*options, "--warehouse", str(tmp_path / "file")], capsys)
    assert (code, out) == (1, "") and f"{tmp_path / 'file'} is not a folder" in err and len(err.splitlines()) == 1
    (tmp_path / "lake" / topic / "metadata").mkdir(parents=True)
    code, out, err = run([*options, "--warehouse", str(tmp_path / "lake")], capsys)
    assert (code, out) == (1, "") and "is an Iceberg table, and the audit reads Delta tables" in err
    (tmp_path / "empty").mkdir()
    code, out, err = run([*options, "--warehouse", str(tmp_path / "empty")], capsys)
    assert code == 1 and "complete: every" not in out and f"has no record of topic {topic}" in err
    assert f"{topic}: no window has ended, so nothing can be judged yet; the first one ends at " in out


def test_what_cannot_be_compared_is_one_sentence(
    bootstrap: str, new_topic: NewTopic, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    topic = new_topic()
    options = ["--topics", topic, "-b", bootstrap]
    with pytest.raises(AuditFailed, match=r"^No producer has reported to topic nowhere-1: .* audit_topic=nowhere-1 "):
        audit(bootstrap, [topic], [], audit_topic="nowhere-1", window_ms=MINUTE_MS)
    code, out, err = run([*options, "--window", "10"], capsys)
    assert code and not out and len(err.splitlines()) == 1
    code, out, err = run(["--topics", ",", "-b", bootstrap], capsys)
    assert code and "--topics names no topic" in err
    reports = new_topic()
    with Producer(bootstrap) as producer:
        producer.send(reports, b"garbage").result()
    code, out, err = run([*options, "--audit-topic", reports], capsys)
    assert code == 1 and "no producer has reported a record" in out
    assert "1 record that cannot be read as an event" in err
    code, out, err = run(["--topics", "nowhere-2", "-b", bootstrap, "--audit-topic", reports], capsys)
    assert code == 1 and "nowhere-2" in err
    code, out, err = run([*options, "--audit-topic", reports, "--page", str(tmp_path / "no" / "page.html")], capsys)
    assert code and "cannot be written" in err
