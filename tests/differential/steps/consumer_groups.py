"""Consumer groups (KIP-848): joining, heartbeats, reconciliation, static members, leaving, describing.

A group computes its assignment at most once a second, so that steps that wait for one send their heartbeat `until` it
has come.
"""

from moldau.protocol.apis import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tests.differential.script import Step, Tree, V, Variables, step
from tests.differential.steps.groups import join as classic_join
from tests.differential.steps.topics import more

BEAT, DESCRIBE = CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE


def beat(group: str, member: object, epoch: object, **more: object) -> dict[str, object]:
    """A heartbeat that says nothing new."""
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **more}


def join(group: str, member: object, *topics: str, **more: object) -> dict[str, object]:
    whole = {
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": list(topics or ("seats",)),
        "topic_partitions": [],
    }
    return beat(group, member, 0, **{**whole, **more})


def owning(*partitions: int, topic: str = "seats") -> list[dict[str, object]]:
    return [{"topic_id": V(f"{topic}-id"), "partitions": list(partitions)}] if partitions else []


def at_epoch(epoch: int) -> object:
    return lambda reply: reply["error_code"] != 0 or reply["member_epoch"] == epoch


def assigned(count: int) -> object:
    """Until an answer brings so many partitions."""

    def until(reply: Tree) -> bool:
        given = reply["assignment"]
        return given is not None and sum(len(t["partitions"]) for t in given["topic_partitions"]) == count

    return until


def commit(group: str, member: object, epoch: int, partition: int = 0, topic: str = "seats") -> dict[str, object]:
    partitions = [{"partition_index": partition, "committed_offset": 5}]
    topics = [{"name": topic, "partitions": partitions}]
    return {"group_id": group, "member_id": member, "generation_id_or_member_epoch": epoch, "topics": topics}


def fetch(group: str, member: object, epoch: int) -> dict[str, object]:
    return {"groups": [{"group_id": group, "member_id": member, "member_epoch": epoch, "topics": None}]}


def older(name: str, by: int) -> object:
    """The epoch in that variable, so many epochs ago."""

    def value(variables: Variables) -> int:
        return int(variables[name]) - by

    return value


TOPICS: tuple[Step, ...] = (
    step(
        "seats for consumers",
        CREATE_TOPICS,
        7,
        {"topics": [{"name": name, "num_partitions": 3, "replication_factor": 1} for name in ("seats", "rows")]},
        save={"seats-id": "topics[name=seats].topic_id", "rows-id": "topics[name=rows].topic_id"},
    ),
)
"""Made well before they are read: Kafka's coordinator hears of topics a little later than everybody else."""

WRONG: tuple[Step, ...] = (
    step("join the newer way without a group", BEAT, 1, join("", "a")),
    step("join without an id", BEAT, 1, join("new", "")),
    step("join without a rebalance timeout", BEAT, 1, join("new", "a", rebalance_timeout_ms=-1)),
    step("join without a subscription", BEAT, 0, join("new", "a", subscribed_topic_names=None)),
    step("join with partitions", BEAT, 0, join("new", "a", topic_partitions=owning(1))),
    step("join without saying what one has", BEAT, 1, join("new", "a", topic_partitions=None)),
    step("join with an empty instance id", BEAT, 1, join("new", "a", instance_id="")),
    step("join with an empty rack", BEAT, 1, join("new", "a", rack_id="")),
    step("join with an assignor nobody has", BEAT, 1, join("new", "a", server_assignor="mine")),
    step("join with an expression that is none", BEAT, 1, join("new", "a", subscribed_topic_regex="(")),
    step("a heartbeat to no group", BEAT, 1, beat("new", "a", 1)),
    step("a heartbeat of an impossible epoch", BEAT, 1, beat("new", "a", -3)),
    step("leave for now without an instance id", BEAT, 1, beat("new", "a", -2)),
    step("leave no group the newer way", BEAT, 1, beat("new", "a", -1)),
    step("a heartbeat without an id", BEAT, 0, beat("new", "", 1)),
    step("describe consumers of no group", DESCRIBE, 1, {"group_ids": ["new", ""]}),
)

ALONE: tuple[Step, ...] = (
    step("join alone", BEAT, 1, join("solo", "a"), save={"e": "member_epoch"}),
    step("join again", BEAT, 1, join("solo", "a")),
    step("all is well", BEAT, 1, beat("solo", "a", V("e"))),
    step("say what one has", BEAT, 1, beat("solo", "a", V("e"), topic_partitions=owning(0, 1, 2))),
    step("say all there is to say", BEAT, 1, {**join("solo", "a"), "member_epoch": V("e")}),
    step("an epoch that is to come", BEAT, 1, beat("solo", "a", 9)),
    step("an epoch that is gone", BEAT, 1, beat("solo", "a", older("e", 1))),
    step("a stranger's heartbeat", BEAT, 1, beat("solo", "x", V("e"))),
    step("a stranger leaves", BEAT, 1, beat("solo", "x", -1)),
    step("describe one consumer", DESCRIBE, 1, {"group_ids": ["solo"], "include_authorized_operations": True}),
    step("describe one consumer in the oldest way", DESCRIBE, 0, {"group_ids": ["solo"]}),
    step("describe it as a classic group", DESCRIBE_GROUPS, 6, {"groups": ["solo"]}),
    step("describe it as a classic group, older", DESCRIBE_GROUPS, 5, {"groups": ["solo"]}),
    step("list consumers", LIST_GROUPS, 5, {"types_filter": ["consumer"], "states_filter": ["Stable"]}),
    step("commit at the epoch", OFFSET_COMMIT, 9, commit("solo", "a", 2)),
    step("commit at an epoch to come", OFFSET_COMMIT, 9, commit("solo", "a", 3)),
    step("commit at an epoch that is gone", OFFSET_COMMIT, 9, commit("solo", "a", 1)),
    step("commit in a version that knows no epochs", OFFSET_COMMIT, 8, commit("solo", "a", 2)),
    step("commit as a stranger", OFFSET_COMMIT, 9, commit("solo", "x", 2)),
    step("commit to consumers as nobody", OFFSET_COMMIT, 9, commit("solo", "", -1)),
    step("commit as nobody, older", OFFSET_COMMIT, 5, commit("solo", "", -1)),
    step("fetch at the epoch", OFFSET_FETCH, 9, fetch("solo", "a", 2)),
    step("fetch at another epoch", OFFSET_FETCH, 9, fetch("solo", "a", 1)),
    step("fetch as a stranger", OFFSET_FETCH, 9, fetch("solo", "x", 2)),
    step("fetch as nobody", OFFSET_FETCH, 9, fetch("solo", None, -1)),
    step("fetch of a group that is not there, as a member", OFFSET_FETCH, 9, fetch("nosuch", "a", 2)),
    step(
        "delete offsets of a topic that is read",
        OFFSET_DELETE,
        0,
        {"group_id": "solo", "topics": [{"name": "seats", "partitions": [{"partition_index": 0}]}]},
    ),
    step("delete a group with a consumer", DELETE_GROUPS, 2, {"groups_names": ["solo"]}),
    step("read other topics", BEAT, 1, beat("solo", "a", V("e"), subscribed_topic_names=["rows"])),
    step(
        "partitions of the new topics come",
        BEAT,
        1,
        beat("solo", "a", V("e"), topic_partitions=[]),
        until=assigned(3),
        save={"e": "member_epoch"},
    ),
    step(
        "delete offsets of a topic that is no longer read",
        OFFSET_DELETE,
        0,
        {"group_id": "solo", "topics": [{"name": "seats", "partitions": [{"partition_index": 0}]}]},
    ),
    step("the topic grows", CREATE_PARTITIONS, 3, {"topics": [more("rows", 4)], "timeout_ms": 5000}),
    step(
        "it is seen to have grown",
        METADATA,
        12,
        {"topics": [{"name": "rows"}]},
        until=lambda reply: len(reply["topics"][0]["partitions"]) == 4,
    ),
    step(
        "so does the assignment",
        BEAT,
        1,
        {**join("solo", "a", "rows"), "member_epoch": V("e")},
        until=assigned(4),
        save={"e": "member_epoch"},
    ),
    step("leave", BEAT, 1, beat("solo", "a", -1)),
    step("leave once more", BEAT, 1, beat("solo", "a", -1)),
    step("describe a group that all have left", DESCRIBE, 1, {"group_ids": ["solo"]}),
    step("list groups that all have left", LIST_GROUPS, 5, {"types_filter": ["Consumer"], "states_filter": ["empty"]}),
    step("commit to it as nobody", OFFSET_COMMIT, 8, commit("solo", "", -1)),
    step("delete the group that all have left", DELETE_GROUPS, 2, {"groups_names": ["solo"]}),
    step("the group that all have left is gone", DESCRIBE, 1, {"group_ids": ["solo"]}),
)

TOGETHER: tuple[Step, ...] = (
    step("the first consumer", BEAT, 1, join("pair", "a"), save={"a": "member_epoch"}),
    step("the second consumer", BEAT, 1, join("pair", "b")),
    step(
        "the first has to give back",
        BEAT,
        1,
        beat("pair", "a", V("a"), topic_partitions=owning(0, 1, 2)),
        until=lambda reply: reply["assignment"] is not None,
        save={"kept": "assignment.topic_partitions[0].partitions"},
    ),
    step("the group reconciles", DESCRIBE, 1, {"group_ids": ["pair"]}),
    step(
        "the second waits",
        BEAT,
        1,
        {**join("pair", "b"), "member_epoch": 2},
        save={"b": "member_epoch"},
    ),
    step("the first says nothing", BEAT, 1, beat("pair", "a", V("a"))),
    step("the first still has them", BEAT, 1, beat("pair", "a", V("a"), topic_partitions=owning(0, 1, 2))),
    step("and the second still waits", BEAT, 1, beat("pair", "b", V("b"))),
    step(
        "the first gave back",
        BEAT,
        1,
        beat("pair", "a", V("a"), topic_partitions=owning(0, 1)),
        save={"a": "member_epoch"},
    ),
    step("the second gets it", BEAT, 1, beat("pair", "b", V("b")), save={"b": "member_epoch"}),
    step("the group is stable again", DESCRIBE, 1, {"group_ids": ["pair"]}),
    step(
        "its answer was lost, so the first says the epoch before",
        BEAT,
        1,
        beat("pair", "a", older("a", 1), topic_partitions=owning(0, 1)),
    ),
    step(
        "the epoch before, with what it has not",
        BEAT,
        1,
        beat("pair", "a", older("a", 1), topic_partitions=owning(0, 1, 2)),
    ),
    step("the second consumer leaves", BEAT, 1, beat("pair", "b", -1)),
    step("the first gets all", BEAT, 1, beat("pair", "a", V("a"), topic_partitions=owning(0, 1)), until=assigned(3)),
    step("the first leaves too", BEAT, 0, beat("pair", "a", -1)),
)

FIXED: tuple[Step, ...] = (
    step("join with an instance id", BEAT, 1, join("firm", "a", instance_id="i"), save={"e": "member_epoch"}),
    step("another with that instance id", BEAT, 1, join("firm", "b", instance_id="i")),
    step("another's heartbeat with it", BEAT, 1, beat("firm", "b", V("e"), instance_id="i")),
    step("a heartbeat with an unknown one", BEAT, 1, beat("firm", "a", V("e"), instance_id="j")),
    step("leave with an unknown one", BEAT, 1, beat("firm", "a", -1, instance_id="j")),
    step("leave with another's", BEAT, 1, beat("firm", "b", -2, instance_id="i")),
    step("leave for now", BEAT, 1, beat("firm", "a", -2, instance_id="i")),
    step("who left for now is still there", DESCRIBE, 1, {"group_ids": ["firm"]}),
    step("who left for now has no heartbeat", BEAT, 1, beat("firm", "a", V("e"), instance_id="i")),
    step("come back as another", BEAT, 1, join("firm", "b", instance_id="i"), save={"e": "member_epoch"}),
    step("it is described", DESCRIBE, 1, {"group_ids": ["firm"]}),
    step("the old one is fenced", BEAT, 1, beat("firm", "a", V("e"), instance_id="i")),
    step("the old one is nobody", BEAT, 1, beat("firm", "a", V("e"))),
    step("leave for now again", BEAT, 1, beat("firm", "b", -2, instance_id="i")),
    step("come back to read other topics", BEAT, 1, join("firm", "b", "rows", instance_id="i")),
    step("go for good", BEAT, 1, beat("firm", "b", -1, instance_id="i")),
)

MIXED: tuple[Step, ...] = (
    step("join a group that classic members find", BEAT, 1, join("mixed", "a")),
    step("join it with an instance id", BEAT, 1, join("mixed", "b", instance_id="i")),
    step("a classic heartbeat to it", HEARTBEAT, 3, {"group_id": "mixed", "generation_id": 2, "member_id": "x"}),
    step("a sync with it", SYNC_GROUP, 3, {"group_id": "mixed", "generation_id": 2, "member_id": "x"}),
    step("a connector joins consumers", JOIN_GROUP, 1, classic_join("mixed", protocol_type="connect")),
    step("nobody leaves it in the classic way", LEAVE_GROUP, 2, {"group_id": "mixed", "member_id": "x"}),
    step(
        "an administrator takes its members out",
        LEAVE_GROUP,
        3,
        {
            "group_id": "mixed",
            "members": [
                {"member_id": "x", "group_instance_id": "i"},
                {"group_instance_id": "j"},
                {"member_id": "a"},
                {"group_instance_id": "i"},
            ],
        },
    ),
    step("and is a classic group at once", JOIN_GROUP, 1, classic_join("mixed"), save={"m": "member_id"}),
    step("as is described", DESCRIBE, 1, {"group_ids": ["mixed"]}),
    step("a newer heartbeat to it", BEAT, 1, beat("mixed", "a", 3)),
    step("it empties again", LEAVE_GROUP, 2, {"group_id": "mixed", "member_id": V("m")}),
    step("and is a consumer group at once", BEAT, 1, join("mixed", "a")),
    step("as all can see", LIST_GROUPS, 5, {"types_filter": ["consumer"]}),
    step("and leaves nothing", BEAT, 1, beat("mixed", "a", -1)),
    step("of what was", DELETE_GROUPS, 2, {"groups_names": ["mixed", "firm", "pair"]}),
)

STEPS: tuple[Step, ...] = (*WRONG, *ALONE, *TOGETHER, *FIXED, *MIXED)
