"""Bugs of loads put in on purpose: what a warehouse counts as loaded, which row of a key is the newest, what an audit
compares. The tests of each rule find them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as compute
import pytest

from moldau.pipeline.audit.comparing import Difference
from tests.pipeline import test_ranges as ranges
from tests.pipeline.audit import test_comparing as comparing
from tests.pipeline.loading import test_upserting as upserting
from tests.pipeline.tables import test_newest as newest
from tests.pipeline.tables import test_table as tables
from tests.replacing import Instead, assert_found, nothing, returns

COMMITTING = "moldau.pipeline.tables.committing"
Do = Callable[..., Any]


def _notes_the_start(kept_numbers: Do, end: Any, *rest: Any) -> Any:
    return kept_numbers({tp: max(offset - 1, 0) for tp, offset in end.items()}, *rest)


def _by_time(newest: Do, rows: Any) -> Any:
    """As if the offset did not count in a partition."""
    one = rows.set_column(rows.schema.get_field_index("_partition"), "_partition", rows["_offset"].cast("int32"))
    return newest(one)


def _without_tombstones(apart: Do, rows: Any) -> tuple[Any, Any]:
    values, tombstones = apart(rows)
    return values, tombstones.slice(0, 0)


def _counts_alone(surplus: Do, kind: str, rows: Any, others: Any, by: list[str]) -> Difference:
    """As many rows as there are too many, whichever they are."""
    found: Difference = surplus(kind, rows, others, by)
    return found._replace(records=max(rows[1].num_rows - (0 if others is None else others.num_rows), 0))


def _passes_the_end(ration: Do, start: Any, end: Any, records_max: int) -> Any:
    return {tp: start.get(tp, end[tp]) + records_max for tp in end}


BUGS: dict[str, tuple[Instead, Callable[[Path], None]]] = {
    "a load commits beside another one of the same offsets": (
        Instead(f"{COMMITTING}:check_offsets", nothing),
        tables.test_of_two_loads_of_the_same_offsets_one_commits,
    ),
    "a warehouse notes an offset too few": (
        Instead(f"{COMMITTING}:kept_numbers", _notes_the_start),
        tables.test_commits_add_up_and_offsets_go_on,
    ),
    "columns of later records are left out": (
        Instead("moldau.pipeline.tables.table:Table.lacking", returns([])),
        tables.test_new_columns_are_added_once_and_a_changed_type_is_refused,
    ),
    "the newest record of a key is the one with the latest time": (
        Instead("moldau.pipeline.tables.newest:newest", _by_time),
        lambda _: newest.test_in_a_partition_the_offset_counts_and_between_partitions_the_time(),
    ),
    "a record that comes late replaces the newer row of its key": (
        Instead("moldau.pipeline.tables.newest:is_newer", lambda _, one, __: compute.is_valid(one["_offset"])),
        upserting.test_a_key_that_changes_its_partition_is_ordered_by_time,
    ),
    "a row outlives a later record of its partition if another partition has the newest": (
        Instead("moldau.pipeline.tables.newest:replaced", lambda _, rows, __: pyarrow.repeat(False, rows.num_rows)),
        lambda folder: (
            upserting.test_a_record_replaces_the_row_of_its_partition_though_another_partition_has_the_newest(folder, 1)
        ),
    ),
    "tombstones delete nothing": (
        Instead("moldau.pipeline.loading.upserting:apart", _without_tombstones),
        upserting.test_each_key_has_one_row_its_newest_and_tombstones_delete,
    ),
    "a limit of records passes the end of a log": (
        Instead("moldau.pipeline.ranges:ration", _passes_the_end),
        lambda _: ranges.test_a_ration_is_shared_by_what_waits(),
    ),
    "a lost record beside a doubled one balances": (
        Instead("moldau.pipeline.audit.comparing:_surplus", _counts_alone),
        lambda _: comparing.test_a_warehouse_is_compared_by_partition_and_offset(),
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    bug, check = BUGS[name]
    assert_found(bug, lambda: check(tmp_path_factory.mktemp("warehouse")))
