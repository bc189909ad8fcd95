"""Leader epochs: where each ended, asked of topics that have had one leader only, and of what is not there."""

from moldau.protocol.apis import OFFSET_FOR_LEADER_EPOCH
from tests.differential.script import Step, step


def end_of(topic: str, *asked: tuple[int, int, int], **more: object) -> dict[str, object]:
    """(partition, the leader's epoch as the asker knows it, the epoch whose end is asked) of one topic."""
    parts = [
        {"partition": index, "current_leader_epoch": current, "leader_epoch": epoch} for index, current, epoch in asked
    ]
    return {"topics": [{"topic": topic, "partitions": parts}], **more}


CONSUMER = {"replica_id": -1}

STEPS: tuple[Step, ...] = (
    step("end of an epoch, oldest version", OFFSET_FOR_LEADER_EPOCH, 2, end_of("events", (0, 0, 0), (1, -1, 0))),
    step("end of an epoch, middle version", OFFSET_FOR_LEADER_EPOCH, 3, end_of("events", (0, 0, 0), **CONSUMER)),
    step("end of an epoch, newest version", OFFSET_FOR_LEADER_EPOCH, 4, end_of("events", (0, 0, 0), **CONSUMER)),
    step("end of an epoch to come", OFFSET_FOR_LEADER_EPOCH, 4, end_of("events", (0, 0, 5), **CONSUMER)),
    step("end of no epoch", OFFSET_FOR_LEADER_EPOCH, 4, end_of("events", (0, 0, -1), **CONSUMER)),
    step("end of an epoch, asker ahead", OFFSET_FOR_LEADER_EPOCH, 4, end_of("events", (0, 7, 0), **CONSUMER)),
    step("end of an epoch of nothing written", OFFSET_FOR_LEADER_EPOCH, 4, end_of("configured", (0, 0, 0), **CONSUMER)),
    step("end of an epoch, no such partition", OFFSET_FOR_LEADER_EPOCH, 4, end_of("events", (9, 0, 0), **CONSUMER)),
    step("end of an epoch, no such topic", OFFSET_FOR_LEADER_EPOCH, 4, end_of("absent", (0, 0, 0), **CONSUMER)),
    step("end of an epoch of nothing", OFFSET_FOR_LEADER_EPOCH, 4, {"topics": [], **CONSUMER}),
)
