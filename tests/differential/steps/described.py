"""DescribeTopicPartitions: some topics and all of them, a page at a time, with cursors right and wrong."""

from moldau.protocol.apis import CREATE_TOPICS, DESCRIBE_TOPIC_PARTITIONS, METADATA
from tests.differential.script import Step, step
from tests.differential.steps.topics import has_leaders


def of(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> dict[str, object]:
    place = {"topic_name": cursor[0], "partition_index": cursor[1]} if cursor else None
    return {"topics": [{"name": name} for name in names], "response_partition_limit": limit, "cursor": place}


def described(name: str, fields: dict[str, object]) -> Step:
    return step(name, DESCRIBE_TOPIC_PARTITIONS, 0, fields)


STEPS: tuple[Step, ...] = (
    step(
        "make topics to describe",
        CREATE_TOPICS,
        7,
        {
            "topics": [
                {"name": name, "num_partitions": count, "replication_factor": 1}
                for name, count in (("paged-a", 3), ("paged-b", 1), ("paged-c", 4))
            ],
            "timeout_ms": 10000,
        },
    ),
    step(
        "see the topics to describe",
        METADATA,
        12,
        {"topics": [{"name": name} for name in ("paged-a", "paged-b", "paged-c")]},
        until=has_leaders,
    ),
    described("describe a topic", of("paged-a")),
    described("describe topics out of order", of("paged-c", "paged-a", "paged-b")),
    described("describe a topic twice", of("paged-b", "paged-b")),
    described("describe a topic that is not there", of("paged-x", "paged-b")),
    described("describe a topic that cannot be", of("paged x")),
    described("describe a topic without a name", of("")),
    described("describe a page", of("paged-a", "paged-c", limit=2)),
    described("describe the next page", of("paged-a", "paged-c", limit=2, cursor=("paged-a", 2))),
    described("describe a page that ends with a topic", of("paged-a", "paged-b", "paged-c", limit=3)),
    described("describe one at a time", of("paged-a", limit=1)),
    described("describe none at a time", of("paged-a", limit=0)),
    described("describe fewer than none", of("paged-a", limit=-5)),
    described("describe from a topic on that is not there", of("paged-a", "paged-c", cursor=("paged-b1", 3))),
    described("describe from a partition on that is not there", of("paged-a", "paged-c", cursor=("paged-a", 7))),
    described("describe from the partition behind the last", of("paged-a", "paged-b", cursor=("paged-a", 3))),
    described("describe from a topic on that was not named", of("paged-a", "paged-c", cursor=("paged-b", 0))),
    described("describe from behind all", of("paged-a", cursor=("zzz", 0))),
    described("describe from a negative partition", of("paged-a", cursor=("paged-a", -1))),
    described("describe all from a topic on that is gone", of(cursor=("paged-aa", 3), limit=4)),
    described("describe all from a topic on", of(cursor=("paged-a", 1), limit=4)),
    described("describe an absent topic within a page", of("paged-a", "paged-aa", "paged-c", limit=4)),
    described("describe an absent topic behind a page", of("paged-a", "paged-aa", limit=3)),
    described("describe an internal topic", of("__consumer_offsets", limit=2)),
)
