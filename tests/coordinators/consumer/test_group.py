"""A consumer group as its records describe it."""

import uuid

import pytest

from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerMember, Phase, current_of
from moldau.coordinators.consumer.records import ConsumerGroupRecord, ConsumerRecordType
from moldau.protocol.internal import ConsumerGroupCurrentMemberAssignmentValue, OwnedTopicPartitions

PART = OwnedTopicPartitions(topic_id=uuid.UUID(int=7), partitions=[0], assignment_epochs=[2])


@pytest.mark.parametrize(("phase", "number"), [(Phase.STABLE, 0), (Phase.UNREVOKED, 1), (Phase.UNRELEASED, 2)])
def test_the_phase_of_a_member_is_written_as_kafkas_number(phase: Phase, number: int) -> None:
    assert current_of(ConsumerMember("m", phase=phase)).state == number


@pytest.mark.parametrize(
    ("state", "revoking", "phase"),
    [
        (0, False, Phase.STABLE),
        (1, True, Phase.UNREVOKED),
        (2, False, Phase.UNRELEASED),
        (1, False, Phase.STABLE),  # the last three as Moldau 0.1 wrote them
        (2, True, Phase.UNREVOKED),
        (3, False, Phase.UNRELEASED),
        (4, False, Phase.UNKNOWN),
        (127, False, Phase.UNKNOWN),
        (-1, True, Phase.UNKNOWN),
    ],
)
def test_the_phase_is_read_from_records_of_kafka_and_of_earlier_versions(
    state: int, revoking: bool, phase: Phase
) -> None:
    group = ConsumerGroup("g")
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2, state=state, partitions_pending_revocation=[PART] if revoking else []
    )
    group.apply(ConsumerGroupRecord(ConsumerRecordType.CURRENT, "g", "m", value))
    assert group.members["m"].phase is phase
