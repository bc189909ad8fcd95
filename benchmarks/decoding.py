"""What decoding JSON costs a load: values a second of processor time, all good or with some that are odd.

usage: python -m benchmarks.decoding [--rows N] [--every N]

One value in N is odd, in one way for each line of the table. Each case runs five times; the fastest counts.
"""

import argparse
import functools
import json
import sys

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.columns import best
from moldau.pipeline.decoding.ddl import columns_of
from moldau.pipeline.decoding.json_values import JsonValues

COLUMNS = "id BIGINT, user STRING, at TIMESTAMP, path STRING, ms BIGINT, ok BOOLEAN, score DOUBLE"
ODD = {
    "not JSON": b"{",
    "another type": b'{"id": "x"}',
    "a fraction": b'{"id": 1.5}',
    "an unknown field": b'{"id": 1, "more": 2}',
    "not a time": b'{"at": "soon"}',
    "not UTF-8": b'{"user": "\xff"}',
}


def values(rows: int) -> list[bytes]:
    return [
        json.dumps({
            "id": n, "user": f"u{n % 1000}", "at": "2024-02-29T12:00:00Z", "path": f"/a/b/{n}", "ms": n * 7, "ok": True,
            "score": n / 7,
        }).encode()
        for n in range(rows)
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoding", description=__doc__)
    parser.add_argument("--rows", type=int, default=32_768)
    parser.add_argument("--every", type=int, default=100)
    asked = parser.parse_args(arguments)
    good = values(asked.rows)
    table = Table("odd values", "values a second", title=f"{asked.rows:,} values of {len(good[-1])} B")
    for name, odd in {"none": good[0], **ODD}.items():
        mixed = list(good)
        mixed[asked.every // 2 :: asked.every] = [odd] * len(mixed[asked.every // 2 :: asked.every])
        array, decoder = pa.array(mixed, pa.binary()), JsonValues(columns_of(COLUMNS), keeps_rest=True)
        seconds = best(functools.partial(decoder.found, array))
        table.add_row(name, f"{asked.rows / seconds:,.0f}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
