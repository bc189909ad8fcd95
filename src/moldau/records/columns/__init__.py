# ruff: noqa: E402  (outdated compiled files must not be imported)
"""The one compiled extension: all work that is done per record.

`scanning` checks records on append and before they are read, and finds one by its time; `plain_batches` reads the
header along with that; `seeking` passes over batches by their headers, `decoding` makes columns (`layouts`) and rows of
records, `encoding` writes them, `filling` adds them to a batch one by one, `hashing` chooses partitions by key,
`digesting` counts and hashes records for the audit, `cleaning` compacts them. All are Cython in its pure-Python mode:
compiled where there was a compiler, interpreted elsewhere, from the same files.
"""

from moldau.records import compiled_from

compiled_from.check()

from moldau.records.columns import (
    cleaning,
    decoding,
    digesting,
    encoding,
    filling,
    hashing,
    layouts,
    plain_batches,
    scanning,
    seeking,
)
from moldau.records.columns.cleaning import MASK as HASH_MASK
from moldau.records.columns.cleaning import choose, copy_chosen, keyed_hash, note_keys
from moldau.records.columns.decoding import decode, refused, rows
from moldau.records.columns.digesting import (
    DELAY_BUCKETS,
    FIRST_BUCKET,
    FIRST_COUNT,
    NO_ARRIVAL,
    delay_bucket,
    digest,
    hashes,
    longest_in,
    record_hash,
    widened,
)
from moldau.records.columns.encoding import Source, encode_columns, encode_rows, header_block
from moldau.records.columns.filling import (
    CALLBACK_BYTES,
    NO_HEADERS,
    RECORD_SIZE_MAX,
    OpenBatch,
    OpenBatches,
    RecordPlace,
    StickyPartition,
    acknowledge,
)
from moldau.records.columns.hashing import by_partition, murmur2, positive_hash
from moldau.records.columns.layouts import Binary, Columns
from moldau.records.columns.plain_batches import plain
from moldau.records.columns.scanning import FLAWS, Section, first_timed, measure, scan
from moldau.records.columns.seeking import largest, seek

COMPILED: bool = all(
    module.COMPILED
    for module in (scanning, plain_batches, seeking, layouts, decoding, encoding, filling, hashing, digesting, cleaning)
)

__all__ = [
    "CALLBACK_BYTES",
    "COMPILED",
    "DELAY_BUCKETS",
    "FIRST_BUCKET",
    "FIRST_COUNT",
    "FLAWS",
    "HASH_MASK",
    "NO_ARRIVAL",
    "NO_HEADERS",
    "RECORD_SIZE_MAX",
    "Binary",
    "Columns",
    "OpenBatch",
    "OpenBatches",
    "RecordPlace",
    "Section",
    "Source",
    "StickyPartition",
    "acknowledge",
    "by_partition",
    "choose",
    "copy_chosen",
    "decode",
    "delay_bucket",
    "digest",
    "encode_columns",
    "encode_rows",
    "first_timed",
    "hashes",
    "header_block",
    "keyed_hash",
    "largest",
    "longest_in",
    "measure",
    "murmur2",
    "note_keys",
    "plain",
    "positive_hash",
    "record_hash",
    "refused",
    "rows",
    "scan",
    "seek",
    "widened",
]
