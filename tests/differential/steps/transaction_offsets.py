"""TxnOffsetCommit in all versions: by whoever has a transaction or none, for groups of every kind.

A group `tx-members` has one member, `tx-static` one with a name; others have none. What Kafka 4.3.1 answers, looking in
this order, for each partition:

    an empty transactional id 42, an empty group id 24, a topic or partition that is not there 3 (the others go on)
    v0-4: the group's partition is not part of the transaction 48, from v4 on 120; v5 adds it
    another's id or an unknown name 49; another epoch 47 in all versions
    from v3 on, of a group: a stranger 25 where there are members, in no generation 25 too; 22 without a group; a
    member in another generation or none 22; somebody else under a name 82, a name nobody has 25. No id at -1: 0
    a note that is too long 12; offsets below zero are taken

Pending offsets are not listed where all of a group's are asked for; asked by name, or listed because there is an older
one, they are 88 if they must be stable. OffsetDelete takes a pending offset out of its transaction.
"""

from collections.abc import Iterator

from moldau.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.groups import join, sync
from tests.differential.steps.transaction_requests import (
    Number,
    add_offsets,
    commit,
    described,
    end,
    init,
    plus,
    started,
)

GROUPS: tuple[Step, ...] = (
    step("a member of tx-members", JOIN_GROUP, 3, join("tx-members", session_ms=600_000), save={"txm": "member_id"}),
    step("tx-members is stable", SYNC_GROUP, 2, sync("tx-members", 1, V("txm"), (V("txm"), b"all"))),
    step(
        "a member of tx-static",
        JOIN_GROUP,
        5,
        join("tx-static", session_ms=600_000, group_instance_id="s"),
        save={"txs": "member_id"},
    ),
    step(
        "tx-static is stable",
        SYNC_GROUP,
        3,
        sync("tx-static", 1, V("txs"), (V("txs"), b"all"), group_instance_id="s"),
    ),
)


def offsets_of(*groups: str, stable: bool) -> dict[str, object]:
    return {"groups": [{"group_id": group, "topics": None} for group in groups], "require_stable": stable}


def by(member: object, generation: object, **more: object) -> dict[str, object]:
    return {"member_id": member, "generation_id_or_member_epoch": generation, **more}


def wrongly(version: int) -> Iterator[Step]:
    """A transaction is open, and the group's partition is not part of it; then it is."""
    name = f"tx-offsets-{version}"
    me, epoch = V(name), V(f"{name}-epoch")
    group = f"{name}-group"
    yield started(name, 1, f"{name}-before")
    saved = {me.name: "producer_id", epoch.name: "producer_epoch"}
    yield step(f"{name} is begun again", INIT_PRODUCER_ID, 4, init(name), save=saved)

    def committed(what: str, fields: dict[str, object]) -> Step:
        return step(f"v{version}: offsets in a transaction {what}", TXN_OFFSET_COMMIT, version, fields)

    producers: dict[str, tuple[str, Number, Number]] = {
        "by another's id": (name, 987654, epoch),
        "by no id": (name, -1, epoch),
        "by an earlier epoch": (name, me, plus(epoch.name, -1)),
        "by a later epoch": (name, me, plus(epoch.name, 1)),
        "by no epoch": (name, me, -1),
        "by a name nobody has": ("tx-absent", me, epoch),
        "by no name": ("", me, epoch),
    }
    if version < 5:
        yield committed("before they are added", commit(name, me, epoch, group, (0, 1)))
        yield step(
            f"v{version}: offsets are added", ADD_OFFSETS_TO_TXN, min(version, 4), add_offsets(name, me, epoch, group)
        )
    for what, producer in producers.items():
        yield committed(what, commit(*producer, group, (0, 2)))
    yield described(f"{name}, whose group nobody changed", [name])
    yield committed("for no group", commit(name, me, epoch, "", (0, 1)))
    yield committed("for what is not there", commit(name, me, epoch, group, (0, 3), topic="absent"))
    yield committed("for a partition that is not there", commit(name, me, epoch, group, (9, 4), (0, 4)))
    long = commit(name, me, epoch, group, (0, 5))
    long["topics"][0]["partitions"][0]["committed_metadata"] = "x" * 4097  # type: ignore[index]
    yield committed("with too long a note", long)
    yield committed("below zero", commit(name, me, epoch, group, (0, -3)))
    yield committed("of no partition", commit(name, me, epoch, group))
    yield committed("that are right", commit(name, me, epoch, group, (0, 6), (1, 7)))
    yield committed("that are right, later ones", commit(name, me, epoch, group, (0, 8)))
    yield step(f"v{version}: pending offsets", OFFSET_FETCH, 9, offsets_of(group, stable=False))
    yield step(f"v{version}: pending offsets, if stable", OFFSET_FETCH, 9, offsets_of(group, stable=True))
    if version >= 3:
        yield from as_members(version, name)
    plain = {"topics": [{"name": "tx", "partitions": [{"partition_index": 2, "committed_offset": 9}]}]}
    yield step(f"v{version}: a plain commit beside", OFFSET_COMMIT, 8, {"group_id": group, **plain})
    yield step(f"v{version}: pending and plain ones, if stable", OFFSET_FETCH, 7, old_fetch(group))
    deleted = {"group_id": group, "topics": [{"name": "tx", "partitions": [{"partition_index": 0}]}]}
    yield step(f"v{version}: a pending offset is deleted", OFFSET_DELETE, 0, deleted)
    yield step(
        f"v{version}: the transaction with offsets ends", END_TXN, version, end(name, me, epoch, version % 2 == 0)
    )
    yield described(f"{name} at its end", [name], "CompleteCommit" if version % 2 == 0 else "CompleteAbort")
    yield step(
        f"v{version}: offsets whose transaction ended", OFFSET_FETCH, 9, offsets_of(group, stable=True), until=is_stable
    )
    yield committed("that has ended", commit(name, me, epoch, group, (0, 10)))
    yield described(f"{name} after its end", [name])


def old_fetch(group: str) -> dict[str, object]:
    topics = [{"name": "tx", "partition_indexes": [0, 1, 2]}]
    return {"group_id": group, "topics": topics, "require_stable": True}


def is_stable(reply: object) -> bool:
    return not any(
        part["error_code"] == 88
        for group in reply["groups"]  # type: ignore[index]
        for topic in group["topics"]
        for part in topic["partitions"]
    )


def as_members(version: int, name: str) -> Iterator[Step]:
    me, epoch = V(name), V(f"{name}-epoch")
    for group in ("tx-members", "tx-static"):
        if version < 5:
            fields = add_offsets(name, me, epoch, group)
            yield step(f"v{version}: offsets of {group} are added", ADD_OFFSETS_TO_TXN, min(version, 4), fields)
    asked = {
        "as nobody": ("tx-members", {}),
        "as a member": ("tx-members", by(V("txm"), 1)),
        "as a stranger": ("tx-members", by("stranger", 1)),
        "as a stranger in no generation": ("tx-members", by("stranger", -1)),
        "as a member in no generation": ("tx-members", by(V("txm"), -1)),
        "as a member in another generation": ("tx-members", by(V("txm"), 2)),
        "as nobody in a generation": ("tx-members", by("", 1)),
        "as nobody in generation zero": ("tx-members", by("", 0)),
        "under its name": ("tx-static", by(V("txs"), 1, group_instance_id="s")),
        "without its name": ("tx-static", by(V("txs"), 1)),
        "under a name nobody has": ("tx-static", by(V("txs"), 1, group_instance_id="t")),
        "as another under its name": ("tx-static", by("stranger", 1, group_instance_id="s")),
        "as a stranger where nobody is": ("tx-nobodys", by("stranger", 1)),
        "as a stranger in no generation where nobody is": ("tx-nobodys", by("stranger", -1)),
    }
    for what, (group, member) in asked.items():
        fields = commit(name, me, epoch, group, (0, 11), **member)
        yield step(f"v{version}: offsets in a transaction {what}", TXN_OFFSET_COMMIT, version, fields)
    yield step(
        f"v{version}: pending offsets of members", OFFSET_FETCH, 9, offsets_of("tx-members", "tx-static", stable=True)
    )


CLOSING: tuple[Step, ...] = (
    step("offsets of the members in the end", OFFSET_FETCH, 9, offsets_of("tx-members", "tx-static", stable=True)),
    step("the member of tx-members leaves", LEAVE_GROUP, 1, {"group_id": "tx-members", "member_id": V("txm")}),
    step("the member of tx-static leaves", LEAVE_GROUP, 1, {"group_id": "tx-static", "member_id": V("txs")}),
)

STEPS: tuple[Step, ...] = (*GROUPS, *(one for version in range(6) for one in wrongly(version)), *CLOSING)
