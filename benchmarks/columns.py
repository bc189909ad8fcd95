"""What columns cost a client: microseconds of processor time per record, encoding and decoding, without a broker.

usage: python -m benchmarks.columns [--rows N] [--bytes N] [--distinct N]

Each case runs five times; the fastest counts. Values are JSON of about the given size that compresses to about a half.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from moldau.client.fetching import FETCH_MAX_BYTES
from moldau.client.producing.columnar import RecordColumns, encoded_batches
from moldau.records.arena import Arena
from moldau.records.arrow import to_record_batches
from moldau.records.batch import read_header, stamp
from moldau.records.compression import CODECS

PARTITIONS = 6
BATCH_BYTES = 512 * 1024
RUNS = 5


def values(rows: int, size: int) -> pa.Array:
    """JSON with random digits: about half of each value is different from the others."""
    chance = random.Random(7)
    filler = '"airline":"UA","origin":"EWR","destination":"IAH","carrier":"1545","delay":' * (size // 150)
    return pa.array([f"{{{filler}{chance.getrandbits(4 * (size // 2)):0{size // 2}x}}}".encode() for _ in range(rows)])


def keys(rows: int, distinct: int) -> pa.Array:
    chance = random.Random(8)
    return pa.array([b"key-%d" % chance.randrange(distinct) for _ in range(rows)])


def fetches(batches: list[bytearray]) -> list[bytes]:
    """The batches in replies of about the size that `read_columns` asks for."""
    replies, size = [bytearray()], 0
    for batch in batches:
        if size + len(batch) > FETCH_MAX_BYTES:
            replies.append(bytearray())
            size = 0
        replies[-1] += batch
        size += len(batch)
    return [bytes(reply) for reply in replies]


def best(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    taken = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.columns", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--distinct", type=int, default=100_000)
    asked = parser.parse_args(arguments)
    contents, named = values(asked.rows, asked.bytes), keys(asked.rows, asked.distinct)
    table = Table("codec", "keys", "encode us", "decode us", title=f"{asked.rows:,} records of {asked.bytes} B")
    for codec in ("none", "lz4", "zstd", "snappy", "gzip"):
        for keyed in (None, named):

            def encode(codec: str = codec, keyed: pa.Array | None = keyed) -> list[bytearray]:
                times = pa.repeat(pa.scalar(1_700_000_000_000, pa.int64()), len(contents))
                columns = RecordColumns(keyed, contents, times, None, None)
                made = encoded_batches(columns, PARTITIONS, lambda _: 0, batch_bytes=BATCH_BYTES, codec=CODECS[codec])
                found = [batch.data for batch in made]
                for data in found:
                    stamp(data, read_header(data).attributes, read_header(data).max_timestamp)
                return found

            fetched, arena = fetches(encode()), Arena()

            def decode(fetched: list[bytes] = fetched, arena: Arena = arena) -> int:
                pieces = (piece for one in fetched for piece in to_record_batches(one, "t", 0, arena=arena))
                return sum(piece.num_rows for piece in pieces)

            out, back = best(encode), best(decode)
            table.add_row(
                codec, "keys" if keyed else "-", f"{out / asked.rows * 1e6:.3f}", f"{back / asked.rows * 1e6:.3f}"
            )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
