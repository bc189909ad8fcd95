"""The warehouse as a tier of the audit, whatever tool has written its files."""

from pathlib import Path

from deltalake import DeltaTable

from moldau.pipeline.audit.warehouse_tier import WarehouseTier
from moldau.pipeline.decoding.choosing import Decoding
from tests.pipeline.loading.tables_by_hand import DAY_MS, TOPIC, ByHand


def test_files_that_another_tool_has_rewritten_are_read_as_those_of_a_load(tmp_path: Path) -> None:
    hand = ByHand(tmp_path, "delta")
    hand.produce(0, b"a", None, b"a longer value than twelve bytes", b"d" * 90)
    hand.load(Decoding())
    tier, windows = WarehouseTier(str(tmp_path)), [day * DAY_MS for day in range(4)]
    before = tier.digests(TOPIC, DAY_MS)[0]
    places = [row for batch in tier.places(TOPIC, DAY_MS, windows) for row in batch.to_pylist()]
    DeltaTable(tmp_path / TOPIC).optimize.compact()
    table = DeltaTable(tmp_path / TOPIC)
    table.update(predicate="_offset <> 1", updates={"_timestamp_type": "0"})
    table.delete("_offset = 0")
    after = tier.digests(TOPIC, DAY_MS)[0]
    left = [row for batch in tier.places(TOPIC, DAY_MS, windows) for row in batch.to_pylist()]
    by_offset = sorted(left, key=lambda row: row["offset"])
    assert by_offset == sorted(places, key=lambda row: row["offset"])[1:]
    hashes = {start: (one.records, one.hash_sum) for start, one in before.items() if start}
    assert {start: (one.records, one.hash_sum) for start, one in after.items()} == hashes
