"""What the broker makes of batches whose codec is not the topic's: every codec into every other."""

from moldau.protocol.apis import FETCH, LIST_OFFSETS, PRODUCE
from tests.differential.batches import GZIP, LZ4, SNAPPY, T0, ZSTD, batch, record
from tests.differential.script import Step, step
from tests.differential.steps.fetch import LATEST, MAX_TIMESTAMP, at, read
from tests.differential.steps.produce import to
from tests.differential.steps.topics import made, new

CODECS = {"uncompressed": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
WANTED = (*CODECS, "producer")
STAMPED = "in-gzip-stamped"
TOPICS = [
    *(new(f"in-{name}", compression_type=name) for name in WANTED),
    new(STAMPED, compression_type="gzip", message_timestamp_type="LogAppendTime"),
]

CREATING = made("for each codec", *TOPICS)

ROWS = ((b"key", b"value" * 60), (None, b""), (b"", None), (b"other", bytes(100)))
ODD = b"".join(
    record(row, i, delta, [("h", b"1"), ("h", None), ("", b"")])
    for i, (row, delta) in enumerate(zip(ROWS, (40, 7, -3, 12), strict=True))
)


def odd(codec: int, **more: int) -> bytes:
    """Times in no order, none of them the batch's own, and headers."""
    return batch(*ROWS, codec=codec, body=ODD, timestamp=T0, max_timestamp=T0 + 40, **more)


INTO: tuple[Step, ...] = tuple(
    step(f"{sent} where the topic wants {wanted}", PRODUCE, 8, to(f"in-{wanted}", batch(*ROWS, codec=codec)))
    for wanted in WANTED
    for sent, codec in CODECS.items()
)

MORE: tuple[Step, ...] = (
    *(
        step(
            f"times in no order and headers where the topic wants {wanted}", PRODUCE, 8, to(f"in-{wanted}", odd(codec))
        )
        for wanted, codec in (("uncompressed", ZSTD), ("gzip", 0), ("snappy", LZ4), ("lz4", GZIP), ("zstd", SNAPPY))
    ),
    step(
        "no times where the topic wants gzip",
        PRODUCE,
        8,
        to(
            "in-gzip",
            batch(*ROWS, timestamp=-1, max_timestamp=-1, body=b"".join(record(r, i) for i, r in enumerate(ROWS))),
        ),
    ),
    step(
        "an idempotent batch where the topic wants lz4",
        PRODUCE,
        8,
        to("in-lz4", odd(GZIP, producer_id=7100, producer_epoch=3, base_sequence=0)),
    ),
    step(
        "the same idempotent batch, in another codec",
        PRODUCE,
        8,
        to("in-lz4", odd(ZSTD, producer_id=7100, producer_epoch=3, base_sequence=0)),
    ),
    step("stamped where the topic wants gzip", PRODUCE, 8, to(STAMPED, odd(LZ4))),
    step("stamped where it is gzip already", PRODUCE, 8, to(STAMPED, odd(GZIP))),
    step("attributes of one's own where the topic wants gzip", PRODUCE, 8, to("in-gzip", odd(0, attributes=1 << 9))),
    step("a wrong checksum where the topic wants gzip", PRODUCE, 8, to("in-gzip", odd(0, crc=5))),
    step(
        "a wrong count where the topic wants gzip", PRODUCE, 8, to("in-gzip", odd(SNAPPY, count=3, last_offset_delta=2))
    ),
)

OUT: tuple[Step, ...] = (
    *(step(f"fetch what the broker compressed: {wanted}", FETCH, 12, read(f"in-{wanted}")) for wanted in WANTED),
    step("fetch what the broker compressed: in its own time", FETCH, 12, read(STAMPED)),
    step("fetch what the broker compressed: from the middle", FETCH, 12, read("in-zstd", 6)),
    step("the largest time inside a codec", LIST_OFFSETS, 7, at("in-zstd", (0, MAX_TIMESTAMP))),
    step("a time inside a codec", LIST_OFFSETS, 7, at("in-lz4", (0, T0 + 8))),
    step("the end of what the broker compressed", LIST_OFFSETS, 7, at("in-gzip", (0, LATEST))),
)

STEPS: tuple[Step, ...] = (*CREATING, *INTO, *MORE, *OUT)
