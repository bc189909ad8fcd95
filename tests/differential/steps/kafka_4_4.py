"""What Apache Kafka 4.4.0 added to what we have: ApiVersions 5, DeleteGroups 3, TxnOffsetCommit 6, a bound of records.

ApiVersions 5 names a broker and its cluster, both or neither (else 42); any other broker answers 129, and the
connection goes on. DeleteGroups 3 has a message for each group, which is null with 68 and 69. TxnOffsetCommit 6, for
each partition:

    a topic id that is not there 100, a partition that is not there 3 (the others go on)
    a generation or epoch without a group 69
    a member of a consumer group at another epoch 113; of a classic group in another generation 22
    and all others as version 5: see `transaction_offsets`

`max.decompressed.message.bytes` bounds each record of a compressed batch, without its length field (else 87).
"""

import uuid
from collections.abc import Iterator

from moldau.protocol.apis import (
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_TOPICS,
    DELETE_GROUPS,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from tests.differential.batches import batch
from tests.differential.script import Step, V, raw, step
from tests.differential.steps.groups import join, sync
from tests.differential.steps.produce import to
from tests.differential.steps.topics import has_leaders
from tests.differential.steps.transaction_offsets import by, is_stable
from tests.differential.steps.transaction_requests import Number, described, end, init, of, plus

NO_ID, NO_TOPIC = uuid.UUID(int=0), uuid.UUID(int=44)
ME, EPOCH = V("tx44"), V("tx44-epoch")
SOFTWARE = {"client_software_name": "x", "client_software_version": "1"}
NEWER = b"\0\x12\0\6\0\0\0\1\0\1c\0\2x\0021\0\xff\xff\xff\xff\0"
"""ApiVersions 6 in the form of version 5."""


def meant(cluster: object, node: object) -> dict[str, object]:
    return {**SOFTWARE, "cluster_id": cluster, "node_id": node}


ASKING: tuple[Step, ...] = (
    step(
        "which cluster is it",
        METADATA,
        12,
        {"topics": []},
        save={"cluster44": "cluster_id", "node44": "brokers[0].node_id"},
    ),
    step("what do you speak, whoever you are", API_VERSIONS, 5, SOFTWARE),
    step("what do you speak, you", API_VERSIONS, 5, meant(V("cluster44"), V("node44"))),
    step("what do you speak, another broker", API_VERSIONS, 5, meant(V("cluster44"), plus("node44", 1))),
    step("what do you speak, broker minus two", API_VERSIONS, 5, meant(V("cluster44"), -2)),
    step("what do you speak, you of another cluster", API_VERSIONS, 5, meant("another", V("node44"))),
    step("what do you speak, you of a cluster without a name", API_VERSIONS, 5, meant("", V("node44"))),
    step("what do you speak, any broker of the cluster", API_VERSIONS, 5, meant(V("cluster44"), -1)),
    step("what do you speak, any broker of another cluster", API_VERSIONS, 5, meant("another", -1)),
    step("what do you speak, you of any cluster", API_VERSIONS, 5, meant(None, V("node44"))),
    step("what do you speak, broker minus two of any cluster", API_VERSIONS, 5, meant(None, -2)),
    step(
        "a client without a plain name that means another broker",
        API_VERSIONS,
        5,
        {**meant("another", V("node44")), "client_software_name": "a b"},
    ),
    step("what do you speak, after all that", API_VERSIONS, 5, meant(V("cluster44"), V("node44"))),
    raw("ApiVersions of the version after 4.4", API_VERSIONS, 6, NEWER, read_as=0),
)


def commit(
    producer: tuple[str, Number, Number], group: str, topics: list[tuple[object, list[int]]], **more: object
) -> dict[str, object]:
    """`topics`: (id, partitions); the offset of each is its number and 44."""
    listed = [
        {"topic_id": topic, "partitions": [{"partition_index": p, "committed_offset": p + 44} for p in partitions]}
        for topic, partitions in topics
    ]
    return {**of(*producer), "group_id": group, "topics": listed, **more}


def ready() -> Iterator[Step]:
    topics = [{"name": name, "num_partitions": 3, "replication_factor": 1} for name in ("by-id", "by-id-too")]
    saved = {"by-id": "topics[name=by-id].topic_id", "by-id-too": "topics[name=by-id-too].topic_id"}
    yield step("topics that are named by id", CREATE_TOPICS, 7, {"topics": topics}, save=saved)
    keys = ["g44", "g44-none", "g44-classic", "g44-newer", "g44-plain"]
    yield step("who coordinates groups of 4.4", FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": keys})
    yield step(
        "who coordinates transactions of 4.4", FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": ["tx44"]}
    )
    who = {"tx44": "producer_id", "tx44-epoch": "producer_epoch"}
    yield step("a producer of 4.4", INIT_PRODUCER_ID, 5, init("tx44"), save={"tx44-before": "producer_id"})
    yield step("the producer of 4.4 again", INIT_PRODUCER_ID, 5, init("tx44"), save=who)


def offsets() -> Iterator[Step]:
    """Offsets by topic id, right and wrong."""
    me, ids = ("tx44", ME, EPOCH), (V("by-id"), V("by-id-too"))

    def committed(what: str, fields: dict[str, object]) -> Step:
        return step(f"v6: offsets in a transaction {what}", TXN_OFFSET_COMMIT, 6, fields)

    yield committed("by the first request", commit(me, "g44", [(ids[0], [0, 1])]))
    yield committed("for partitions that are not there", commit(me, "g44", [(ids[0], [9, 0, -1])]))
    yield committed("for a topic that is not there", commit(me, "g44", [(NO_TOPIC, [0, 1])]))
    yield committed("for no topic", commit(me, "g44", [(NO_ID, [0])]))
    yield committed("of a known topic and no partition", commit(me, "g44", [(ids[0], [])]))
    yield committed("of an unknown topic and no partition", commit(me, "g44", [(NO_TOPIC, [])]))
    yield committed("of one topic twice", commit(me, "g44", [(ids[0], [0]), (ids[1], [0]), (ids[0], [1])]))
    mixed = [(ids[0], [0, 9]), (NO_TOPIC, [0]), (ids[1], [1, 8]), (ids[0], [2]), (NO_TOPIC, [5])]
    yield committed("of topics that are there and are not", commit(me, "g44", mixed))
    producers: dict[str, tuple[str, Number, Number]] = {
        "by another's id": ("tx44", 987654, EPOCH),
        "by no id": ("tx44", -1, EPOCH),
        "by an earlier epoch": ("tx44", ME, plus("tx44-epoch", -1)),
        "by a later epoch": ("tx44", ME, plus("tx44-epoch", 1)),
    }
    for what, producer in producers.items():
        yield committed(what, commit(producer, "g44", [(ids[0], [0])]))
    yield committed("for no group", commit(me, "", [(ids[0], [0])]))
    for what, who in {
        "as a member where no group is": by("m", 3),
        "as nobody in a generation where no group is": by("", 0),
        "as a named member where no group is": by("m", 3, group_instance_id="i"),
        "as a member in no generation where no group is": by("m", -1),
    }.items():
        yield committed(what, commit(me, "g44-none", [(ids[0], [0])], **who))


def as_members() -> Iterator[Step]:
    me, wanted = ("tx44", ME, EPOCH), [(V("by-id"), [0])]
    member = join("g44-classic", session_ms=600_000)
    yield step("a member of g44-classic", JOIN_GROUP, 3, member, save={"m44": "member_id"})
    yield step("g44-classic is stable", SYNC_GROUP, 2, sync("g44-classic", 1, V("m44"), (V("m44"), b"all")))
    joining = {"rebalance_timeout_ms": 600_000, "subscribed_topic_names": ["by-id"], "topic_partitions": []}
    newer = {"group_id": "g44-newer", "member_id": "m"}
    yield step(
        "a member of g44-newer",
        CONSUMER_GROUP_HEARTBEAT,
        1,
        {**newer, "member_epoch": 0, **joining},
        until=has_partitions,
        save={"e44": "member_epoch"},
    )
    classic = {
        "as a member": by(V("m44"), 1),
        "as nobody": {},
        "as a stranger": by("stranger", 1),
        "as a member in another generation": by(V("m44"), 2),
        "as a member in no generation": by(V("m44"), -1),
        "under a name nobody has": by(V("m44"), 1, group_instance_id="t"),
    }
    consumer = {
        "as a member": by("m", V("e44")),
        "as nobody": {},
        "as nobody at an epoch": by("", V("e44")),
        "as a stranger": by("stranger", V("e44")),
        "as a member at a later epoch": by("m", plus("e44", 1)),
        "as a member at an earlier epoch": by("m", plus("e44", -1)),
        "as a member at no epoch": by("m", -1),
    }
    for group, asked in (("g44-classic", classic), ("g44-newer", consumer)):
        for what, who in asked.items():
            fields = commit(me, group, wanted, **who)
            yield step(f"v6: offsets of {group} in a transaction {what}", TXN_OFFSET_COMMIT, 6, fields)
    yield step("the transaction of 4.4 ends", END_TXN, 5, end(*me))
    yield described("tx44 at its end", ["tx44"], "CompleteCommit")
    topics = [{"name": name, "partition_indexes": [0, 1, 2]} for name in ("by-id", "by-id-too")]
    groups = [{"group_id": group, "topics": topics} for group in ("g44", "g44-none", "g44-classic", "g44-newer")]
    yield step(
        "offsets that were committed by id",
        OFFSET_FETCH,
        9,
        {"groups": groups, "require_stable": True},
        until=is_stable,
    )


def has_partitions(reply: object) -> bool:
    given = reply["assignment"]  # type: ignore[index]
    return given is not None and bool(given["topic_partitions"])


DELETING: tuple[Step, ...] = (
    step(
        "an offset of g44-plain",
        OFFSET_COMMIT,
        8,
        {
            "group_id": "g44-plain",
            "topics": [{"name": "by-id", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
        },
    ),
    step(
        "groups are deleted, with words",
        DELETE_GROUPS,
        3,
        {"groups_names": ["g44-plain", "g44-classic", "g44-newer", "g44-absent", "", "g44-plain"]},
    ),
    step("no group is deleted, with words", DELETE_GROUPS, 3, {"groups_names": []}),
)


def bounded(name: str, bytes_max: str) -> dict[str, object]:
    settings = [{"name": "max.decompressed.message.bytes", "value": bytes_max}]
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": settings}


INFLATING: tuple[Step, ...] = (
    step(
        "bounds of records that are inflated",
        CREATE_TOPICS,
        7,
        {"topics": [bounded(f"inflating-{value}", value) for value in ("10000", "1", "2147483639", "0", "2147483640")]},
    ),
    step("they can be led", METADATA, 12, {"topics": [{"name": "inflating-10000"}]}, until=has_leaders),
    step(
        "it leads",
        PRODUCE,
        9,
        to("inflating-10000", batch(b"first")),
        until=lambda reply: reply["responses"][0]["partition_responses"][0]["error_code"] == 0,
    ),
    *(
        step(
            f"codec {codec}, {what}",
            PRODUCE,
            9,
            to("inflating-10000", batch(b"small", bytes(size), b"small", codec=codec)),
        )
        for codec in (0, 1, 2, 4)
        for size, what in ((9_991, "a record of the bound"), (9_993, "a record beyond the bound"))
    ),
    step("as many as make more than the bound", PRODUCE, 9, to("inflating-10000", batch(*[bytes(900)] * 90, codec=4))),
)

STEPS: tuple[Step, ...] = (*ASKING, *ready(), *offsets(), *as_members(), *DELETING, *INFLATING)
