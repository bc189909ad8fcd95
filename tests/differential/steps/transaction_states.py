"""Every request about a transaction in every state of it, by its producer and by others, in all versions.

Each state has a transactional id of its own, at epoch 1. Those that are being completed stay so: their partition has
seen the marker of a coordinator with a later epoch, so it takes no more of them. What Kafka 4.3.1 answers:

    an empty transactional id  42 everywhere
    AddPartitionsToTxn         another's id or an unknown name 49; another epoch 47 in v0-1, 90 from v2 on; while it is
    and AddOffsetsToTxn        being completed 51, whoever asks
    verifyOnly (v4-5)          another's id 49; another epoch 90; while it is being completed 51 (its own producer);
                               a partition that is not in it, in any state, 120
    EndTxn v0-4                another's id 49; another epoch 47 in v0-1, 90 from v2 on; while it is being completed 51
                               (its own producer); 48 where there is none; once it ended 0 for the same end, 48 else
    EndTxn v5                  while it is being completed 51, whoever asks; another's id 49; another epoch 90, but for
                               the epoch before, once it ended: 0 with the new epoch for the same end, 48 else. Where
                               there is none: commit 48; abort 0, raises the epoch and ends as CompleteAbort
    InitProducerId v3-5        an id without an epoch, or the other way round, 42; while it is being completed 51;
                               open: another's id 47 in v3, 90 from v4 on, its own with any epoch 51, and it is aborted;
                               otherwise another's id or epoch 47 in v3, 90 from v4 on, but the epoch before the last is
                               answered as it was the first time; an unknown name begins at 0 whatever is said
"""

from collections.abc import Iterator

from moldau.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    WRITE_TXN_MARKERS,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.transaction_requests import (
    Number,
    add,
    add_offsets,
    described,
    end,
    init,
    marker,
    plus,
    started,
)

NAMES = {
    "Empty": "tx-empty",
    "Ongoing": "tx-ongoing",
    "PrepareCommit": "tx-committing",
    "PrepareAbort": "tx-aborting",
    "CompleteCommit": "tx-committed",
    "CompleteAbort": "tx-aborted",
}
COMPLETING = ("PrepareCommit", "PrepareAbort")
LATER = 1000
"""The epoch of a coordinator that is none."""


def entered(state: str) -> Iterator[Step]:
    """A transactional id comes into a state."""
    name = NAMES[state]
    me, epoch = V(name), V(f"{name}-epoch")
    yield started(name, 1, f"{name}-before")
    saved = {me.name: "producer_id", epoch.name: "producer_epoch"}
    yield step(f"{name} is begun again", INIT_PRODUCER_ID, 4, init(name), save=saved)
    if state == "Empty":
        return
    topics = {"tx-stuck": [0]} if state in COMPLETING else {"tx": [0]}
    yield step(f"{name} has partitions", ADD_PARTITIONS_TO_TXN, 3, add(3, name, me, epoch, topics))
    if state in COMPLETING:
        fields = {"markers": [marker(me, epoch, topics, coordinator_epoch=LATER)]}
        yield step(f"{name} will not be completed", WRITE_TXN_MARKERS, 1, fields)
    if state != "Ongoing":
        yield step(f"{name} ends", END_TXN, 3, end(name, me, epoch, "Commit" in state))
    yield described(f"{name} in its state", [name], state)


def asked(name: str, who: str, producer: Number, epoch: Number) -> Iterator[Step]:
    """Whatever can be asked of a transaction but to begin it."""
    where = f"{name} by {who}"
    for version in range(6):
        fields = add(version, name, producer, epoch, {"tx": [0, 1], "tx-stuck": [0]})
        yield step(f"v{version}: partitions are added to {where}", ADD_PARTITIONS_TO_TXN, version, fields)
    for version in range(5):
        fields = add_offsets(name, producer, epoch, "tx-group")
        yield step(f"v{version}: offsets are added to {where}", ADD_OFFSETS_TO_TXN, version, fields)
    yield from verified(name, who, producer, epoch)
    yield from ended(name, who, producer, epoch)


def verified(name: str, who: str, producer: Number, epoch: Number) -> Iterator[Step]:
    for version in (4, 5):
        fields = add(version, name, producer, epoch, {"tx": [0, 1], "tx-stuck": [0]}, verifies=True)
        yield step(f"v{version}: partitions of {name} by {who} are verified", ADD_PARTITIONS_TO_TXN, version, fields)


def ended(name: str, who: str, producer: Number, epoch: Number) -> Iterator[Step]:
    for version in range(6):
        for commits in (True, False):
            how = "committed" if commits else "aborted"
            fields = end(name, producer, epoch, commits)
            yield step(f"v{version}: {name} by {who} is {how}", END_TXN, version, fields)


def begun(
    name: str, who: str, producer: Number, epoch: Number, versions: tuple[int, ...] = (3, 4, 5)
) -> Iterator[Step]:
    """InitProducerId by one that says who it is. It may change the state, so it comes last."""
    for version in versions:
        fields = init(name, producer_id=producer, producer_epoch=epoch)
        yield step(f"v{version}: {name} by {who} is begun", INIT_PRODUCER_ID, version, fields)


def others(name: str) -> dict[str, tuple[Number, Number]]:
    return {
        "another's id": (987654, V(f"{name}-epoch")),
        "no id": (-1, V(f"{name}-epoch")),
        "no epoch": (V(name), -1),
        "a later epoch": (V(name), plus(f"{name}-epoch", 1)),
        "an earlier epoch": (V(name), plus(f"{name}-epoch", -1)),
        "another's id and epoch": (987654, 17),
    }


def lived(state: str) -> Iterator[Step]:
    """Others ask, then its own producer, and others begin."""
    name = NAMES[state]
    me, epoch = V(name), V(f"{name}-epoch")
    for who, (producer, at) in others(name).items():
        yield from asked(name, who, producer, at)
    yield described(f"{name}, which nobody changed", [name])
    if state in COMPLETING:
        yield from asked(name, "its own id", me, epoch)
        for version in range(6):
            yield step(f"v{version}: {name} is begun anew", INIT_PRODUCER_ID, version, init(name))
    elif state == "Ongoing":
        yield from verified(name, "its own id", me, epoch)
    else:
        yield from verified(name, "its own id", me, epoch)
        yield from ended(name, "its own id", me, epoch)
    settled = (state,) if state in (*COMPLETING, "Ongoing") else ("CompleteAbort",)
    yield described(f"{name} after its own producer asked", [name], *settled)
    for who, (producer, at) in others(name).items():
        if state == "Ongoing" and producer == me:
            continue
        yield from begun(name, who, producer, at)
    if state == "Ongoing":
        yield from begun(name, "a later epoch", me, plus(f"{name}-epoch", 1), (4,))
        yield described(f"{name} after others began", [name], "CompleteAbort")
    else:
        yield described(f"{name} after others began", [name])


ABSENT: tuple[Step, ...] = (
    *asked("tx-absent", "a stranger", 77, 0),
    *asked("tx-absent", "nobody", -1, -1),
    described("what is not there", ["tx-absent", ""]),
    *(one for version in (3, 4, 5) for one in begun(f"tx-absent-{version}", "a stranger", 77, 0, (version,))),
    *(one for version in (3, 4, 5) for one in begun(f"tx-absent-{version}", "a stranger again", 77, 5, (version,))),
    *asked("", "a stranger", 77, 0),
)

STEPS: tuple[Step, ...] = (
    *(one for state in NAMES for one in entered(state)),
    *ABSENT,
    *(one for state in NAMES for one in lived(state)),
)
