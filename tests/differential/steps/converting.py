"""Which fields of a member stay when it goes on in the other protocol, or when another one takes its place (KIP-848).

Each case has a group of its own. Its member has said something about every field; then it, or another one with its
instance id, says something else, or nothing. A second member keeps it a consumer group; targets are computed at once.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from moldau.protocol import schema
from moldau.protocol.apis import (
    CREATE_TOPICS,
    DELETE_GROUPS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    INCREMENTAL_ALTER_CONFIGS,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from moldau.protocol.consumer import ConsumerProtocolSubscription, OwnedPartitions
from tests.differential.script import Step, V, step
from tests.differential.steps.consumer_groups import BEAT, DESCRIBE
from tests.differential.steps.consumer_groups import beat as newer_beat
from tests.differential.steps.groups import join as classic_join
from tests.differential.steps.groups import sync
from tests.differential.steps.migrating import given

GROUP, INTERVAL = 32, "consumer.assignment.interval.ms"
SHELVES = ("shelf-1", "shelf-2")
OLD, NEW = "old-client", "new-client"
ALL: Mapping[str, Any] = {
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["shelf-1"],
    "subscribed_topic_regex": "no-shelf-.*",
    "server_assignor": "range",
    "rack_id": "r1",
    "topic_partitions": [],
}
"""Everything that a member of the consumer protocol can say."""
LITTLE: Mapping[str, Any] = {
    "rebalance_timeout_ms": 31_000,
    "subscribed_topic_names": ["shelf-2"],
    "topic_partitions": [],
}
EXPRESSION: Mapping[str, Any] = {
    "rebalance_timeout_ms": 31_000,
    "subscribed_topic_regex": "nothing-.*",
    "topic_partitions": [],
}
Build: TypeAlias = Callable[[str], Step]
"""The step of the group with that name."""


def words(*topics: str, rack: str | None = None, version: int = 3, owned: str | None = None) -> dict[str, Any]:
    """What a classic member says: its topics, and from version 3 its rack."""
    parts = [] if owned is None else [OwnedPartitions(topic=owned, partitions=[0])]
    said = ConsumerProtocolSubscription(topics=list(topics), rack_id=rack, owned_partitions=parts)
    metadata = version.to_bytes(2, "big") + bytes(schema.write(said, version, False))
    return {"protocols": [{"name": name, "metadata": metadata} for name in ("sticky", "range")]}


def newer(
    name: str, said: Mapping[str, Any], instance: str | None = None, member: object = None, client: str = NEW
) -> Build:
    fields = {"instance_id": instance, **said}
    return lambda group: step(
        f"{group}: {name} joins", BEAT, 1, newer_beat(group, member or name, 0, **fields), client_id=client
    )


def classic(
    name: str, said: Mapping[str, Any], instance: str | None = None, member: object = "", client: str = NEW
) -> Build:
    version = 5 if instance else 3  # from version 4 on a member without an instance id joins twice
    return lambda group: step(
        f"{group}: {name} joins as a classic member",
        JOIN_GROUP,
        version,
        classic_join(group, member, group_instance_id=instance, **said),
        client_id=client,
        save={f"{group}-{name}": "member_id"},
    )


def said_all(instance: str | None = None) -> Build:
    return newer("n", ALL, instance, client=OLD)


def said_classic(instance: str | None = None) -> Build:
    return classic("c", words("shelf-1", rack="r1"), instance, client=OLD)


def away() -> Build:
    return lambda group: step(f"{group}: n is away", BEAT, 1, newer_beat(group, "n", -2, instance_id="i"))


CASES: Mapping[str, tuple[Build, ...]] = {
    # A classic member takes the place of a static member of the consumer protocol.
    "classic-in-place": (said_all("i"), away(), classic("c", words("shelf-1", rack="r2"), "i")),
    "classic-without-rack": (said_all("i"), away(), classic("c", words("shelf-2"), "i")),
    "classic-in-version-1": (said_all("i"), away(), classic("c", words("shelf-1", version=1), "i")),
    "classic-while-held": (said_all("i"), classic("c", words("shelf-1"), "i")),
    "classic-that-owns": (said_all("i"), away(), classic("c", words("shelf-1", owned="shelf-1"), "i")),
    # A member of the consumer protocol takes the place of a static classic member.
    "newer-in-place": (said_classic("i"), newer("n", ALL, "i")),
    "newer-with-little": (said_classic("i"), newer("n", LITTLE, "i")),
    "newer-with-expression": (said_classic("i"), newer("n", EXPRESSION, "i")),
    # A static member is replaced in its own protocol.
    "newer-for-newer": (said_all("i"), away(), newer("m", LITTLE, "i")),
    "newer-for-newer-by-expression": (said_all("i"), away(), newer("m", EXPRESSION, "i")),
    "classic-for-classic": (said_classic("i"), classic("d", words("shelf-2"), "i")),
    # A member changes its own protocol.
    "goes-classic": (said_all(), classic("n", words("shelf-1"), member="n")),
    "goes-newer": (said_classic(), newer("c", LITTLE, member=V("goes-newer-c"))),
    "goes-newer-with-all": (said_classic(), newer("c", ALL, member=V("goes-newer-with-all-c"))),
    "goes-and-returns": (
        said_all(),
        classic("n", words("shelf-2"), member="n"),
        newer("n again", {**ALL, "subscribed_topic_regex": None, "server_assignor": None, "rack_id": None}, member="n"),
    ),
}


def of_case(group: str, builds: tuple[Build, ...]) -> tuple[Step, ...]:
    named = {"resource_type": GROUP, "resource_name": group}
    at_once = {**named, "configs": [{"name": INTERVAL, "value": "0"}]}
    return (
        step(f"{group}: is assigned at once", INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [at_once]}),
        step(
            f"{group}: is known to be",
            DESCRIBE_CONFIGS,
            4,
            {"resources": [{**named, "configuration_keys": [INTERVAL]}]},
            until=lambda reply: reply["results"][0]["configs"][0]["value"] == "0",
        ),
        newer("beside", LITTLE, client="beside")(group),
        *(build(group) for build in builds),
        step(f"{group}: what it knows of the member", DESCRIBE, 1, {"group_ids": [group]}),
        step(f"{group}: beside leaves", BEAT, 1, newer_beat(group, "beside", -1)),
        *leaves(group, builds[-1](group)),
    )


TOPICS: tuple[Step, ...] = (
    step(
        "shelves for those who convert",
        CREATE_TOPICS,
        7,
        {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in SHELVES]},
    ),
)


MOVES: Mapping[str, Build] = {
    "moves": classic("c", words("shelf-1", rack="r1"), client=OLD),
    "moves-in-version-1": classic("c", words("shelf-1", version=1), client=OLD),
    "moves-as-instance": classic("c", words("shelf-1", rack="r1"), "i", client=OLD),
}
"""Classic groups that become consumer groups, are classic again when the newer member has gone, and once more."""


def moved(group: str, build: Build) -> tuple[Step, ...]:
    me = V(f"{group}-c")
    return (
        build(group),
        step(f"{group}: c is given all", SYNC_GROUP, 3, sync(group, 1, me, (me, given(0, topic="shelf-1")))),
        newer("beside", LITTLE, client="beside")(group),
        step(f"{group}: what it knows after the upgrade", DESCRIBE, 1, {"group_ids": [group]}),
        step(f"{group}: beside leaves", BEAT, 1, newer_beat(group, "beside", -1)),
        step(f"{group}: what it knows after the downgrade", DESCRIBE_GROUPS, 5, {"groups": [group]}),
        newer("again", LITTLE, client="beside")(group),
        step(f"{group}: what it knows after another upgrade", DESCRIBE, 1, {"group_ids": [group]}),
        step(f"{group}: again leaves", BEAT, 1, newer_beat(group, "again", -1)),
        *leaves(group, build(group)),
    )


def leaves(group: str, last: Step) -> tuple[Step, ...]:
    """The member that made the last step leaves. With nobody but classic members the group is classic by then."""
    if last.api is JOIN_GROUP:
        members = [{"member_id": V(name)} for name in last.save]
        return (step(f"{group}: it leaves", LEAVE_GROUP, 3, {"group_id": group, "members": members}),)
    who = {"instance_id": last.fields.get("instance_id")}
    return (step(f"{group}: it leaves", BEAT, 1, newer_beat(group, last.fields["member_id"], -1, **who)),)


LAST: tuple[Step, ...] = (
    step(
        "those who convert are assigned as others",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {
            "resources": [
                {"resource_type": GROUP, "resource_name": group, "configs": [{"name": INTERVAL, "config_operation": 1}]}
                for group in CASES
            ]
        },
    ),
    step("nothing is left of those who convert", DELETE_GROUPS, 2, {"groups_names": [*CASES, *MOVES]}),
)

STEPS: tuple[Step, ...] = (
    *(one for group, builds in CASES.items() for one in of_case(group, builds)),
    *(one for group, build in MOVES.items() for one in moved(group, build)),
    *LAST,
)
