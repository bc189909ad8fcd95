"""Batches as a load hands them to a decoder."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.rejections import RULES
from moldau.pipeline.tables.columns import WHY

RECORD_MS = 1_700_000_000_000


def batch(values: Sequence[bytes | None]) -> Any:
    """Records with these values, and offsets from 100 on."""
    count = len(values)
    columns = {
        "value": pa.array(values, pa.binary()),
        "_key": pa.array([b"k"] * count, pa.binary()),
        "_partition": pa.array([3] * count, pa.int32()),
        "_offset": pa.array(range(100, 100 + count), pa.int64()),
        "_timestamp": pa.array([RECORD_MS * 1000] * count, pa.timestamp("us", "UTC")),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def decoded(decoder: Any, values: Sequence[bytes | None]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The decoded rows without the record's columns, and the reasons of the others by the index of the value. Checks
    what holds for every decoder."""
    given = batch(values)
    good, bad = decoder.decode(given)
    good.validate(full=True)
    bad.validate(full=True)
    assert good.schema.names == [*decoder.schema.names, "_key", "_partition", "_offset", "_timestamp"]
    assert [good.schema.field(name).type for name in decoder.schema.names] == decoder.schema.types
    assert bad.schema.names == [*given.schema.names, *WHY.names]
    assert set(bad.column("rule").to_pylist()) <= set(RULES) and "" not in bad.column("field").to_pylist()
    offsets = [good.column("_offset").to_pylist(), bad.column("_offset").to_pylist()]
    assert all(one == sorted(one) for one in offsets)
    assert sorted(offsets[0] + offsets[1]) == given.column("_offset").to_pylist()
    assert [values[offset - 100] for offset in offsets[1]] == bad.column("value").to_pylist()
    reasons = dict(zip([offset - 100 for offset in offsets[1]], bad.column("reason").to_pylist(), strict=True))
    assert all(reason and "\n" not in reason for reason in reasons.values())
    return good.select(decoder.schema.names).to_pylist(), reasons


def why(decoder: Any, value: bytes) -> tuple[str, str | None, str]:
    """The rule, field and reason of a value that is rejected."""
    _, bad = decoder.decode(batch([value]))
    [found] = bad.select(["rule", "field", "reason"]).to_pylist()
    return tuple(found.values())  # type: ignore[return-value]


def sample(values: Sequence[bytes]) -> list[Sampled]:
    """Records with these values, as a sample has them: partition 3, offsets from 100 on."""
    return [Sampled(value, 3, 100 + at) for at, value in enumerate(values)]
