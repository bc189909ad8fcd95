"""Tables with one row per key: a load leaves the newest record of each, whoever else commits and wherever it dies."""

import random
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.tiers import seed_or
from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.decoding.keys import with_keys
from moldau.pipeline.loading import merging, upserting, writing
from moldau.pipeline.loading.removed_rows import settle, standing
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.loading.topic_tables import TopicTables
from moldau.pipeline.loading.widening import widen
from moldau.pipeline.tables import table as tables
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.committing import Conflict
from moldau.pipeline.tables.maintenance import compact, vacuum
from moldau.pipeline.tables.newest import check_key_columns
from moldau.pipeline.tables.removals import RowsRemoved
from moldau.pipeline.tables.warehouse import Warehouse
from tests.pipeline.loading.upserted import Sent, Upserted, expected

TPS = [TopicPartition("t", number) for number in range(3)]


class Died(BaseException):
    """The process is gone."""


def sent(*values: tuple[bytes, bytes | None], first: int = 0, partition: int = 0, time_ms: int = 0) -> list[Sent]:
    """Records of one partition, with offsets from `first` on."""
    return [Sent(partition, first + at, key, value, time_ms or first + at) for at, (key, value) in enumerate(values)]


def test_each_key_has_one_row_its_newest_and_tombstones_delete(tmp_path: Path) -> None:
    upserted = Upserted(tmp_path)
    first = upserted.load([sent((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"d", None))])
    assert (first.records, first.deleted) == (3, 0)
    assert upserted.rows() == [(b"a", b"2", 0, 2), (b"b", b"1", 0, 1), (b"c", b"1", 0, 3)]
    second = upserted.load([sent((b"b", b"2"), (b"c", None), (b"e", b"1"), first=5)])
    assert (second.records, second.deleted, second.version) == (2, 1, 2)
    assert upserted.rows() == [(b"a", b"2", 0, 2), (b"b", b"2", 0, 5), (b"e", b"1", 0, 7)]
    assert upserted.rows("_headers") == [(None,), ([{"key": "h", "value": b"5"}],), ([{"key": "h", "value": b"7"}],)]
    assert upserted.load([sent((b"a", None), (b"b", None), (b"e", None), first=8)]).deleted == 3
    assert upserted.rows() == [] and upserted.table().offsets(TPS) == {TPS[0]: 11}
    assert upserted.table().removed("t", upserted.table().offsets(TPS)) is None
    protocol = DeltaTable(tmp_path / "t").protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2), "every reader reads it"
    assert not list((tmp_path / "t").glob("*tombstones*")), "their files are gone after the commit"


@pytest.mark.parametrize("partition_by", ["none", "date", "hour"])
def test_any_order_of_loads_portions_and_partitions_leaves_the_newest(
    tmp_path: Path, partition_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upserting, "WAITING_BYTES_MAX", 300)
    monkeypatch.setattr(merging, "CHUNK_ROWS", 7)
    monkeypatch.setattr(merging, "FILE_BYTES", 500)
    chance = random.Random(seed_or(5))
    upserted, model, next_offset, time_ms = Upserted(tmp_path, partition_by=partition_by), {}, [0, 0, 0], 0
    for _ in range(8):
        batches = []
        for _ in range(chance.randrange(1, 8)):
            partition, records = chance.randrange(3), []
            for _ in range(chance.randrange(1, 12)):
                time_ms += chance.randrange(3) * 3_600_000
                key, value = b"k%d" % chance.randrange(40), b"v%d" % time_ms
                late_ms = min(time_ms, chance.choice((0, 0, 40)) * 3_600_000)
                value_or_none = chance.choice((value, value, None))
                records.append(Sent(partition, next_offset[partition], key, value_or_none, time_ms - late_ms))
                next_offset[partition] += chance.randrange(1, 3)
            batches.append(records)
        cut = chance.randrange(len(batches) + 1)
        upserted.load(*(portion for portion in (batches[:cut], batches[cut:]) if portion))
        if chance.random() < 0.3:
            compact(upserted.table().where)
        model = expected([one for batch in batches for one in batch], model)
        rows = sorted((one.key, one.value, one.partition, one.offset) for one in model.values())
        assert upserted.rows() == rows
        assert upserted.table().count() == len(rows) == upserted.table().rows("t")


def test_a_key_that_changes_its_partition_is_ordered_by_time(tmp_path: Path) -> None:
    upserted = Upserted(tmp_path)
    old, new = sent((b"a", b"old"), (b"b", b"old")), sent((b"a", b"new"), (b"c", b"new"), partition=2, time_ms=90)
    upserted.load([new])
    done = upserted.load([old])
    assert done.records == 1, "the old record of a comes too late"
    assert upserted.rows() == [(b"a", b"new", 2, 0), (b"b", b"old", 0, 1), (b"c", b"new", 2, 1)]
    upserted.load([sent((b"b", None), partition=1, time_ms=50), sent((b"a", None), first=2, time_ms=80)])
    assert upserted.rows("_key") == [(b"a",), (b"c",)], "the tombstone of a is older than its row"
    upserted.load([sent((b"a", b"last"), first=3, time_ms=95), sent((b"c", b"last"), first=1, partition=1, time_ms=90)])
    assert upserted.rows("value", "_partition") == [(b"last", 0), (b"new", 2)], "of equal times the greater partition"


@pytest.mark.parametrize("portions", [1, 2])
def test_a_record_replaces_the_row_of_its_partition_though_another_partition_has_the_newest(
    tmp_path: Path, portions: int
) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([sent((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), time_ms=300)])
    old = sent((b"a", b"2"), (b"b", None), (b"c", None), first=3, time_ms=100)
    new = sent((b"a", b"3"), (b"b", b"3"), (b"c", None), partition=2, time_ms=200)
    done = upserted.load(*([[old, new]] if portions == 1 else [[old], [new]]))
    assert upserted.rows() == [(b"a", b"3", 2, 0), (b"b", b"3", 2, 1)]
    assert (done.records, done.deleted) == (2, 1) and upserted.table().count() == upserted.table().rows("t") == 2


def test_in_a_partition_the_offset_counts_whatever_the_time(tmp_path: Path) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([[Sent(0, 0, b"a", b"1", 90), Sent(0, 1, b"a", b"2", 50), Sent(0, 2, b"b", b"1", 90)]])
    upserted.load([[Sent(0, 3, b"a", b"3", 10), Sent(0, 4, b"b", None, 20)]])
    assert upserted.rows("_key", "value") == [(b"a", b"3")]


def test_records_without_a_key_are_rejected(tmp_path: Path) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([[Sent(0, 0, b"a", b"1", 0), Sent(0, 1, None, b"2", 0), Sent(0, 2, None, None, 0)]])
    assert upserted.rows("_offset") == [(0,)] and [file.records for file in upserted.rejected] == [2]


def commits_first(upserted: Upserted, monkeypatch: pytest.MonkeyPatch, other: Any) -> list[Any]:
    """Have another one commit, once, when the next load has compared rows and is about to commit."""
    real, done = tables.Table.commit_once, []

    def commit_once(self: Any, *arguments: Any, **others_given: Any) -> Any:
        if not done:
            done.append(None)
            done[0] = other()
        return real(self, *arguments, **others_given)

    monkeypatch.setattr(tables.Table, "commit_once", commit_once)
    return done


def test_a_compaction_that_commits_first_brings_no_old_row_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([sent((b"a", b"1"), (b"b", b"1"))])
    upserted.load([sent((b"c", b"1"), first=2)])
    done = commits_first(upserted, monkeypatch, lambda: compact(upserted.table().where))
    upserted.load([sent((b"a", b"2"), (b"c", None), first=3)])
    assert done[0].removed == 2 and upserted.rows("_key", "value") == [(b"a", b"2"), (b"b", b"1")]
    stale = DeltaTable(tmp_path / "t")
    upserted.load([sent((b"b", b"2"), first=5)])
    with pytest.raises(Exception, match="concurrent transaction"):
        stale.delete("value = '2'")
    assert upserted.rows("_key", "value") == [(b"a", b"2"), (b"b", b"2")]


def test_rows_that_another_tool_adds_meanwhile_are_compared_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([sent((b"a", b"1"))])
    foreign = DeltaTable(tmp_path / "t").to_pyarrow_table().select(["_key", "value"])
    commits_first(
        upserted, monkeypatch, lambda: write_deltalake(tmp_path / "t", foreign, mode="append", schema_mode="merge")
    )
    upserted.load([sent((b"a", b"2"), first=1)])
    assert upserted.rows() == [(b"a", b"2", 0, 1)], "also those that do not say whence they come"


def test_of_two_loads_at_once_one_commits_and_the_other_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([sent((b"a", b"1"))])
    records = sent((b"a", b"2"), (b"b", b"2"), first=1)
    commits_first(upserted, monkeypatch, lambda: Upserted(tmp_path).load([records, sent((b"a", b"3"), first=3)]))
    with pytest.raises(Conflict, match="Another load has committed to"):
        upserted.load([records])
    assert upserted.rows("_key", "value") == [(b"a", b"3"), (b"b", b"2")]


def test_rows_that_another_tool_removes_meanwhile_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([sent((b"a", b"1"), (b"b", b"1"))])
    table = upserted.table()
    assert table.removed("t", table.offsets(TPS)) is None
    commits_first(upserted, monkeypatch, lambda: DeltaTable(tmp_path / "t").delete("_offset = 0"))
    with pytest.raises(Conflict, match="Rows were removed from"):
        upserted.load([sent((b"b", b"2"), first=2)], table=table)
    removed = upserted.table().removed("t", upserted.table().offsets(TPS))
    assert removed is not None and "removed 1 row" in str(removed)


def test_what_other_tools_remove_between_loads_is_noticed_and_our_own_commits_are_not(tmp_path: Path) -> None:
    upserted, other = Upserted(tmp_path), Upserted(tmp_path)
    held = upserted.table()
    for turn in range(3):
        assert held.removed("t", held.offsets(TPS)) is None
        other.load([sent((b"a", b"%d" % turn), (b"b", b"%d" % turn), first=2 * turn)])
        held.refresh()
    compact(held.where)
    held.refresh()
    assert held.removed("t", held.offsets(TPS)) is None
    DeltaTable(tmp_path / "t").delete("_offset = 5")
    for table in (held, upserted.table()):
        table.refresh()
        assert "DELETE" in str(table.removed("t", table.offsets(TPS)))


def test_a_table_that_was_set_back_is_noticed_and_loaded_again_with_its_tombstones(tmp_path: Path) -> None:
    upserted = Upserted(tmp_path)
    records = sent((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"b", None), (b"a", b"2"), (b"c", None))
    for version, part in enumerate((records[:3], records[3:4], records[4:]), 1):
        assert upserted.load([part]).version == version
    for version, sentence in ((2, "RESTORE in version 4.* removed 1 row"), (1, "removed 1 row"), (3, "")):
        DeltaTable(tmp_path / "t").restore(version)
        if sentence:
            with pytest.raises(RowsRemoved, match=sentence):
                standing(upserted.table(), "t", TPS, "refuse")
        else:
            assert standing(upserted.table(), "t", TPS, "refuse").sentence == ""
    DeltaTable(tmp_path / "t").restore(1)
    again = standing(upserted.table(), "t", TPS, "reload")
    assert again.offsets == {TPS[0]: 3} and "is loaded again from offset 3" in again.sentence
    settle(upserted.table(), again, "settle")
    upserted.load([records[3:]])
    assert upserted.rows("_key", "value") == [(b"a", b"2")]


def test_rows_that_come_back_are_noticed_where_none_was_lost(tmp_path: Path) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([sent((b"a", b"1"), (b"b", b"1"))])
    upserted.load([sent((b"a", None), (b"b", None), first=2)])
    DeltaTable(tmp_path / "t").restore(1)
    with pytest.raises(
        RowsRemoved, match=r"has rows again that loads had replaced or deleted: RESTORE .* brought 2 rows"
    ):
        standing(upserted.table(), "t", TPS, "refuse")
    again = standing(upserted.table(), "t", TPS, "reload")
    assert again.offsets == {TPS[0]: 2}
    kept = standing(upserted.table(), "t", TPS, "accept")
    assert "brought 2 rows back; the load goes on with them" in kept.sentence
    settle(upserted.table(), kept, "settle")
    assert standing(upserted.table(), "t", TPS, "refuse").sentence == ""
    assert upserted.rows("_key") == [(b"a",), (b"b",)]


@pytest.mark.parametrize("step", ["stage", "compare", "rewrite", "before commit", "after commit", "forget"])
def test_a_load_that_dies_at_any_step_and_runs_again_leaves_the_newest(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upserted = Upserted(tmp_path)
    upserted.load([sent((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))])
    again = sent((b"a", b"2"), (b"b", None), (b"d", b"1"), (b"a", b"3"), first=3)

    def die(*_: Any, **__: Any) -> Any:
        raise Died

    real = tables.Table.commit_once

    def commit_and_die(self: Any, *arguments: Any, **others_given: Any) -> Any:
        real(self, *arguments, **others_given)
        raise Died

    where: dict[str, tuple[Any, str, Any]] = {
        "stage": (writing.OneFile, "close", die), "compare": (merging, "_compared", die),
        "rewrite": (merging.Rewriting, "finish", die), "before commit": (tables.Table, "commit_once", die),
        "after commit": (tables.Table, "commit_once", commit_and_die), "forget": (merging, "_forget", die),
    }  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(*where[step])
        with pytest.raises(Died):
            upserted.load([again])
    done = step in ("after commit", "forget")
    assert upserted.table().offsets(TPS) == {TPS[0]: 7 if done else 3}
    if not done:
        assert upserted.rows("value", "_offset") == [(b"1", 0), (b"1", 1), (b"1", 2)]
        upserted.load([again])
    assert upserted.rows("_key", "value") == [(b"a", b"3"), (b"c", b"1"), (b"d", b"1")]
    assert vacuum(upserted.table().where, 0, force=True) >= 1
    assert upserted.rows("_key") == [(b"a",), (b"c",), (b"d",)]


def test_loading_records_again_changes_nothing(tmp_path: Path) -> None:
    upserted = Upserted(tmp_path)
    records = sent((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"))
    upserted.load([records])
    table = upserted.table()
    table.commit("back", [], {TPS[0]: 4}, {TPS[0]: 1})
    done = upserted.load([records[1:]])
    assert (done.records, done.files) == (0, 0) and len(upserted.rows()) == 3


def test_decoded_keys_are_compared_by_their_columns(tmp_path: Path) -> None:
    keys = Decoding("json", "region STRING, id BIGINT", of="key")
    upserted = Upserted(tmp_path, with_keys("t", Decoding(), keys, lambda of: []))
    same = (b'{"id": 1, "region": "eu"}', b'{"region":"eu","id":1.0}')
    other = (b'{"id": 1}', b'{"id": 1, "region": "-"}', b'{"id": 11, "region": "eu"}')
    upserted.load([sent((same[0], b"1"), *((key, b"1") for key in other))])
    upserted.load([sent((same[1], b"2"), (other[0], None), first=4)])
    assert upserted.rows("_key_region", "_key_id", "value") == [("-", 1, b"1"), ("eu", 1, b"2"), ("eu", 11, b"1")]
    nested = pyarrow.schema([("_key_a", pyarrow.list_(pyarrow.int64()))])
    with pytest.raises(TableError, match="--upsert cannot compare keys by column _key_a of type array<long>:"):
        check_key_columns(nested, nested.names)


def test_change_events_of_debezium_make_the_table_of_the_database(tmp_path: Path) -> None:
    def event(op: str, before: str = "null", after: str = "null") -> bytes:
        return f'{{"op": "{op}", "ts_ms": 1, "before": {before}, "after": {after}}}'.encode()

    keys = Decoding("json", "id BIGINT", of="key", envelope="debezium")
    decoder = with_keys("t", Decoding("json", "id BIGINT, name STRING", envelope="debezium"), keys, lambda of: [])
    upserted = Upserted(tmp_path, decoder)
    one, two = b'{"id": 1}', b'{"schema": {}, "payload": {"id": 2}}'
    row, other = '{"id": 1, "name": "a"}', '{"id": 2, "name": "b"}'
    upserted.load([sent((one, event("r", after=row)), (two, event("c", after=other)), (two, event("t")))])
    assert upserted.rows("_key_id", "name", "__op") == [(1, "a", "r"), (2, "b", "c")]
    assert [file.records for file in upserted.rejected] == [1]
    done = upserted.load([sent((one, event("u", row, '{"id": 1, "name": "z"}')), (two, event("d", other)), first=3)])
    assert (done.records, done.deleted) == (1, 1) and upserted.rows("_key_id", "name", "__op") == [(1, "z", "u")]
    assert upserted.load([sent((two, None), (one, event("d")), (one, None), first=5)]).deleted == 1
    assert upserted.rows("_key_id") == []


def test_a_table_that_another_load_has_made_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    keys = with_keys("t", Decoding(), Decoding("text", of="key"), lambda of: [])
    one, other = Upserted(tmp_path), TopicTables("t", Warehouse(tmp_path), Settings(upsert=True, partition_by="none"))
    plain = TopicTables("t", Warehouse(tmp_path), Settings())
    for there, decoder in ((other, keys), (plain, None)):
        there.refresh(TPS, None)
        there.check(decoder)
    one.load([sent((b"a", b"1"))])
    with pytest.raises(TableError, match="has type binary and would now have type string"):
        other.target("", "load", keys)
    with pytest.raises(TableError, match="was begun with --upsert: load it with --upsert"):
        plain.target("", "load", None)


def test_columns_that_become_wider_leave_a_table_of_keys_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoder(kind: str) -> Any:
        keys = Decoding("json", f"id {kind}", of="key")
        return with_keys("t", Decoding("json", f"n {kind}"), keys, lambda of: [])

    narrow, wide = Upserted(tmp_path, decoder("INT")), {"n": "long", "_key_id": "long"}
    one, two = b'{"id": 1}', b'{"id": 2}'
    narrow.load([sent((one, b'{"n": 1}'), (two, b'{"n": 1}'))])
    held = narrow.table()
    assert held.removed("t", held.offsets(TPS)) is None
    commits_first(narrow, monkeypatch, lambda: widen(held.where, wide))
    with pytest.raises(Conflict, match="was widened meanwhile"):
        narrow.load([sent((one, b'{"n": 2}'), first=2)], table=held)
    wider = Upserted(tmp_path, decoder("BIGINT"))
    held.refresh()
    assert held.key_columns == ("_key_id",) and held.removed("t", held.offsets(TPS)) is None
    wider.load([sent((one, b'{"n": 3000000000}'), (two, None), first=2)])
    assert wider.rows("_key_id", "n") == [(1, 3_000_000_000)]
