"""Classic members whose subscriptions are malformed, and OffsetDelete of a topic they read and of one they do not.

Each `SHAPES` entry is a group of its own: a version in two bytes, then what the member wrote behind it. A topic that is
cut off in the middle is not among them: Kafka 4.3.1 never answers that JoinGroup.
"""

from moldau.protocol.apis import JOIN_GROUP, LEAVE_GROUP, OFFSET_DELETE, SYNC_GROUP
from tests.differential.script import Step, V, step
from tests.differential.steps.groups import join, sync
from tests.differential.steps.offsets import delete

READS_OFFSETS = b"\0\0\0\1\0\7offsets\xff\xff\xff\xff"
SHAPES = {
    "version 1 in the shape of version 0": b"\0\1" + READS_OFFSETS,
    "version 3 in the shape of version 0": b"\0\3" + READS_OFFSETS,
    "a version nobody knows": b"\0\x63" + READS_OFFSETS,
    "a negative version": b"\xff\xff" + READS_OFFSETS,
    "no user data": b"\0\0" + READS_OFFSETS[:-4],
    "a version alone": b"\0\1",
    "one byte": b"\0",
    "nothing": b"",
    "bytes behind it": b"\0\0" + READS_OFFSETS + b"more",
}

STEPS: tuple[Step, ...] = tuple(
    one
    for number, (shape, metadata) in enumerate(SHAPES.items())
    for group in [f"odd-subscription-{number}"]
    for member in [f"os-{number}"]
    for protocols in [{"protocols": [{"name": "range", "metadata": metadata}]}]
    for one in (
        step(f"{shape}: joins", JOIN_GROUP, 3, join(group, **protocols), save={member: "member_id"}),
        step(f"{shape}: has its share", SYNC_GROUP, 3, sync(group, 1, V(member), (V(member), b"all"))),
        step(f"{shape}: delete what may be read", OFFSET_DELETE, 0, delete(group, 0)),
        step(f"{shape}: delete what is not read", OFFSET_DELETE, 0, delete(group, 0, topic="plain")),
        step(f"{shape}: leaves", LEAVE_GROUP, 2, {"group_id": group, "member_id": V(member)}),
    )
)
