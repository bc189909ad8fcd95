"""What the log takes in and what it refuses: sizes, timestamps, keys where compaction needs them, its settings."""

import random

from moldau.protocol.apis import DESCRIBE_CONFIGS, FETCH, INCREMENTAL_ALTER_CONFIGS, PRODUCE
from tests.differential.batches import GZIP, LZ4, NOW, SNAPPY, T0, ZSTD, batch, record
from tests.differential.script import Step, Tree, step
from tests.differential.steps.configs import SET, TOPIC, ask, change
from tests.differential.steps.fetch import read
from tests.differential.steps.produce import to
from tests.differential.steps.topics import made, new

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
NOISE = random.Random(7).randbytes(1200)
"""Does not get smaller by compression."""

NAMES: dict[str, dict[str, str]] = {
    "sized": {"max_message_bytes": "1000"},
    "sized-raw": {"max_message_bytes": "1000", "compression_type": "uncompressed"},
    "sized-none": {"max_message_bytes": "0"},
    "one-megabyte": {"segment_bytes": "1048576", "max_message_bytes": "3000000"},
    "aged": {"message_timestamp_before_max_ms": str(2 * DAY_MS)},
    "hasty": {"message_timestamp_after_max_ms": str(HOUR_MS // 2)},
    "any-time": {"message_timestamp_after_max_ms": str(2**63 - 1)},
    "clocked": {"message_timestamp_type": "LogAppendTime", "message_timestamp_before_max_ms": "1000"},
    "keyed": {"cleanup_policy": "compact"},
    "keyed-both": {"cleanup_policy": "compact,delete", "message_timestamp_before_max_ms": str(2 * DAY_MS)},
    "keyed-clocked": {"cleanup_policy": "compact", "message_timestamp_type": "LogAppendTime"},
    "keyed-zstd": {"cleanup_policy": "compact", "compression_type": "zstd"},
    "changing": {"max_message_bytes": "100"},
}

CREATING = made("for storage", *(new(name, 1, 1, **settings) for name, settings in NAMES.items()))


def of_size(size: int) -> bytes:
    """A batch of exactly so many bytes."""
    return next(found for n in range(size) if len(found := batch(b"x" * n)) == size)


SIZES: tuple[Step, ...] = tuple(
    step(f"a batch {what}", PRODUCE, version, to(topic, records))
    for what, version, topic, records in (
        ("exactly as large as may be", 8, "sized", of_size(1000)),
        ("one byte larger than may be", 8, "sized", of_size(1001)),
        ("one byte larger than may be, in the oldest way", 3, "sized", of_size(1001)),
        ("one byte smaller than may be", 12, "sized", of_size(999)),
        ("that is small as it comes and large inflated", 8, "sized", batch(b"x" * 50_000, codec=GZIP)),
        ("that zstd made small", 8, "sized", batch(b"x" * 50_000, codec=ZSTD)),
        ("that gzip could not make small enough", 8, "sized", batch(NOISE, codec=GZIP)),
        ("that lz4 could not make small enough", 8, "sized", batch(NOISE, codec=LZ4)),
        ("too large, with a wrong checksum as well", 8, "sized", batch(NOISE, crc=1)),
        ("too large, with a wrong count as well", 8, "sized", batch(NOISE, count=5)),
        ("with as many bytes after it as make it too large", 8, "sized", batch(b"small") + bytes(2000)),
        ("that becomes too large by being inflated", 8, "sized-raw", batch(b"x" * 2000, codec=GZIP)),
        ("that stays small enough when it is inflated", 8, "sized-raw", batch(b"x" * 500, codec=GZIP)),
        ("too large, as it comes, for a topic that inflates", 8, "sized-raw", batch(NOISE, codec=SNAPPY)),
        ("where nothing is small enough", 8, "sized-none", batch(b"")),
        ("larger than a segment may be", 8, "one-megabyte", batch(b"x" * 1_100_000)),
        ("larger than a segment may be only when inflated", 8, "one-megabyte", batch(b"x" * 1_100_000, codec=ZSTD)),
        ("that fills most of a segment", 8, "one-megabyte", batch(b"y" * 600_000)),
        ("that needs the next segment", 8, "one-megabyte", batch(b"z" * 600_000)),
        ("larger than the topic takes, larger than a segment", 8, "one-megabyte", batch(b"x" * 3_000_001)),
    )
) + (
    step("what was small enough", FETCH, 12, read("sized")),
    step("what was small enough inflated", FETCH, 12, read("sized-raw")),
    step("nothing was small enough", FETCH, 12, read("sized-none")),
    step("fetch over the edge of a segment", FETCH, 12, read("one-megabyte", 0)),
    step("fetch the second segment", FETCH, 12, read("one-megabyte", 2)),
)


def timed(*deltas: int, base: int = T0, codec: int = 0, keys: bool = False, **wrong: int) -> bytes:
    """A batch of records with these times after `base`."""
    rows = [(b"k" if keys else None, b"%d" % i) for i in range(len(deltas))]
    body = b"".join(record(row, i, delta) for i, (row, delta) in enumerate(zip(rows, deltas, strict=True)))
    largest = wrong.pop("max_timestamp", base + max(deltas))
    return batch(*rows, codec=codec, body=body, timestamp=base, max_timestamp=largest, **wrong)


TIMES: tuple[Step, ...] = tuple(
    step(f"a record {what}", PRODUCE, version, to(topic, records))
    for what, version, topic, records in (
        ("young enough", 8, "aged", timed(0)),
        ("too old", 8, "aged", timed(0, base=NOW - 3 * DAY_MS)),
        ("too old, in the oldest way", 3, "aged", timed(0, base=NOW - 3 * DAY_MS)),
        ("too old, newest by name", 12, "aged", timed(0, base=NOW - 3 * DAY_MS)),
        ("too old among others", 8, "aged", timed(0, -3 * DAY_MS, 5, -4 * DAY_MS)),
        ("too old among others inside gzip", 8, "aged", timed(0, -3 * DAY_MS, 5, codec=GZIP)),
        ("too old in a batch whose header says otherwise", 8, "aged", timed(0, base=0, max_timestamp=NOW)),
        ("without a time where old ones are refused", 8, "aged", timed(0, base=-1, max_timestamp=-1)),
        ("without a time among others", 8, "aged", timed(0, -T0 - 1)),
        ("of time zero where old ones are refused", 8, "aged", timed(0, base=0)),
        ("of a time below minus one", 8, "aged", timed(0, base=-5, max_timestamp=-5)),
        ("too old in the middle of five, too new at the end", 8, "aged", timed(0, 1, -5 * DAY_MS, 2, 3 * DAY_MS)),
        ("a little in the future", 8, "hasty", timed(0, base=NOW)),
        ("too far in the future", 8, "hasty", timed(0, base=NOW + 2 * HOUR_MS)),
        ("too far in the future, newest by name", 12, "hasty", timed(0, base=NOW + 2 * HOUR_MS)),
        ("too far in the future among others", 8, "hasty", timed(0, 2 * DAY_MS, 1)),
        ("too far in the future inside lz4", 8, "hasty", timed(0, 2 * DAY_MS, codec=LZ4)),
        ("without a time where new ones are refused", 8, "hasty", timed(0, base=-1, max_timestamp=-1)),
        ("from the year 292 million", 8, "any-time", timed(0, base=2**63 - 1)),
        ("of a time below minus one, where any is taken", 8, "any-time", timed(0, base=-5, max_timestamp=-5)),
        ("without a time where any is taken", 8, "any-time", timed(0, 7, base=-1, max_timestamp=6)),
        ("with times that go backwards", 8, "any-time", timed(9, 5, 1)),
        ("with a largest time in the header that is too small", 8, "any-time", timed(0, 9, max_timestamp=T0)),
        ("with a largest time in the header that is too large", 8, "any-time", timed(0, 9, max_timestamp=T0 + 77)),
        ("with a wrong largest time inside zstd", 8, "any-time", timed(0, 9, codec=ZSTD, max_timestamp=T0 + 77)),
        ("of the default's future", 8, "sized", timed(0, base=NOW + 3 * HOUR_MS)),
        ("of the default's past", 8, "sized", timed(0, base=1)),
        ("too old where the broker stamps", 8, "clocked", timed(0, 5, base=NOW - 3 * DAY_MS)),
        ("too old where the broker stamps, inside snappy", 8, "clocked", timed(0, 5, base=1, codec=SNAPPY)),
        ("without a time where the broker stamps", 8, "clocked", timed(0, base=-1, max_timestamp=-1)),
        ("that says the broker stamped it, where it does", 8, "clocked", timed(0, attributes=8)),
        ("that says the broker stamped it, inside gzip", 8, "clocked", timed(0, attributes=8, codec=GZIP)),
        ("that says the broker stamped it, where old ones are refused", 8, "aged", timed(0, attributes=8)),
    )
) + (
    step("what was young enough", FETCH, 12, read("aged")),
    step("what was not too far in the future", FETCH, 12, read("hasty")),
    step("records of any time", FETCH, 12, read("any-time")),
    step("what the broker stamped, whatever it said", FETCH, 12, read("clocked")),
)

K, N = (b"k", b"v"), (None, b"v")

KEYS: tuple[Step, ...] = tuple(
    step(f"where keys are needed, {what}", PRODUCE, version, to(topic, records))
    for what, version, topic, records in (
        ("one record without", 8, "keyed", batch(N)),
        ("one record without, before it was told which", 7, "keyed", batch(N)),
        ("one record without, newest by name", 12, "keyed", batch(N)),
        ("some without", 8, "keyed", batch(K, N, K, N, N, N, N)),
        ("some without inside gzip", 8, "keyed", batch(K, N, K, N, codec=GZIP)),
        ("some without inside zstd", 8, "keyed", batch(N, K, codec=ZSTD)),
        ("an empty key", 8, "keyed", batch((b"", b"v"))),
        ("a key and no value", 8, "keyed", batch((b"k", None))),
        ("neither key nor value", 8, "keyed", batch((None, None))),
        ("all with keys", 8, "keyed", batch(K, K, codec=LZ4)),
        (
            "one without a key, with a sequence",
            8,
            "keyed",
            batch(N, producer_id=7000, producer_epoch=0, base_sequence=0),
        ),
        ("deleted too, one without", 8, "keyed-both", batch(K, N)),
        ("deleted too, one without and too old", 8, "keyed-both", timed(0, base=NOW - 3 * DAY_MS)),
        ("deleted too, one too old", 8, "keyed-both", timed(0, -9 * DAY_MS, keys=True)),
        ("deleted too, one without, another too old", 8, "keyed-both", batch(N, K, timestamp=T0 - 9 * DAY_MS)),
        ("stamped, one without", 8, "keyed-clocked", batch(K, N)),
        ("compressed by the broker, one without", 8, "keyed-zstd", batch(K, N)),
        ("compressed by the broker", 8, "keyed-zstd", batch(K, K)),
    )
) + (
    step("what had keys", FETCH, 12, read("keyed")),
    step("what had keys and was young", FETCH, 12, read("keyed-both")),
)

LIMITS: dict[str, tuple[str, ...]] = {
    "cleanup.policy": ("compact", "delete,compact", "compact,compact", "keep", "", " delete "),
    "compression.type": ("uncompressed", "producer", "none", "GZIP", ""),
    "compression.gzip.level": ("-1", "1", "9", "0", "10"),
    "compression.lz4.level": ("1", "17", "0", "18"),
    "compression.zstd.level": ("-131072", "22", "23", "-131073"),
    "delete.retention.ms": ("0", "-1", "9223372036854775808"),
    "file.delete.delay.ms": ("0", "-1"),
    "flush.messages": ("1", "0"),
    "flush.ms": ("0", "-1"),
    "index.interval.bytes": ("0", "-1", "2147483648"),
    "max.compaction.lag.ms": ("1", "0"),
    "max.message.bytes": ("0", "-1", "2147483647", "1.5"),
    "message.timestamp.after.max.ms": ("0", "-1", "9223372036854775807"),
    "message.timestamp.before.max.ms": ("0", "-1"),
    "message.timestamp.type": ("LogAppendTime", "logappendtime", ""),
    "min.cleanable.dirty.ratio": ("0", "1", "0.5", "1.1", "-0.1", "half"),
    "min.compaction.lag.ms": ("0", "-1"),
    "preallocate": ("true", "TRUE", "yes"),
    "retention.bytes": ("-1", "0", "-2"),
    "retention.ms": ("-1", "0", "-2"),
    "segment.bytes": ("1048576", "1048575", "0", "2147483647"),
    "segment.index.bytes": ("4", "3"),
    "segment.jitter.ms": ("0", "-1"),
    "segment.ms": ("1", "0"),
}

NUMBERS = (
    "compression.lz4.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "message.timestamp.before.max.ms",
    "min.cleanable.dirty.ratio",
    "retention.bytes",
    "segment.bytes",
    "segment.index.bytes",
)

SETTINGS: tuple[Step, ...] = tuple(
    step(
        f"would {name} be {value!r}",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(TOPIC, "changing", (name, SET, value))], "validate_only": True},
    )
    for name, values in LIMITS.items()
    for value in values
) + (
    step(
        "a shortest wait for compaction above the longest",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {
            "resources": [
                change(TOPIC, "changing", ("min.compaction.lag.ms", SET, "5"), ("max.compaction.lag.ms", SET, "4"))
            ]
        },
    ),
    step(
        "set everything of storage at once",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {
            "resources": [
                change(
                    TOPIC,
                    "changing",
                    ("message.timestamp.type", SET, "LogAppendTime"),
                    ("compression.type", SET, "lz4"),
                    ("cleanup.policy", SET, "compact"),
                    *((name, SET, value) for name, (value, *_) in LIMITS.items() if name in NUMBERS),
                    ("max.message.bytes", SET, "1000"),
                )
            ]
        },
    ),
)


def is_taken(reply: Tree) -> bool:
    return bool(reply["responses"][0]["partition_responses"][0]["error_code"] != 10)


CHANGED: tuple[Step, ...] = (
    step(
        "the new settings hold when the batch is no longer too large",
        PRODUCE,
        8,
        to("changing", batch((b"k", b"x" * 200), (b"k", b"y"))),
        until=is_taken,
    ),
    step("a key is needed now", PRODUCE, 8, to("changing", batch(N))),
    step("the broker stamps and compresses now", FETCH, 12, read("changing")),
    step(
        "all settings of storage are as they were set",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(TOPIC, "changing", list(LIMITS))], "include_synonyms": True},
    ),
)

STEPS: tuple[Step, ...] = (*CREATING, *SIZES, *TIMES, *KEYS, *SETTINGS, *CHANGED)
