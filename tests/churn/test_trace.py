"""The trace is read from what the broker writes and logs, as it writes and logs it."""

import json
import uuid
from typing import Any

from moldau.coordinators.classic.records import classic_group_record
from moldau.coordinators.consumer.records import ConsumerGroupRecord, ConsumerRecordType, consumer_group_record
from moldau.coordinators.decision import InternalRecord
from moldau.files.inspection.decoding import offsets
from moldau.protocol import schema
from moldau.protocol.consumer import AssignedPartitions, ConsumerProtocolAssignment, ConsumerProtocolSubscription
from moldau.protocol.internal import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataValue,
    MemberMetadata,
    OwnedTopicPartitions,
)
from tests.churn.evidence import Answer, Current, Generation, Share
from tests.churn.trace import answers, written


def documents(*records: InternalRecord) -> list[dict[str, Any]]:
    return [
        {"timestamp_ms": 1000 + at, "decoded": offsets(record.key, record.value)} for at, record in enumerate(records)
    ]


def part(topic: str, *partitions: int) -> AssignedPartitions:
    return AssignedPartitions(topic=topic, partitions=list(partitions))


def test_a_generation_is_read_with_what_members_had_and_were_given() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], owned_partitions=[part("t", 1)])
    assignment = ConsumerProtocolAssignment(assigned_partitions=[part("t", 1, 2), part("other", 7)])
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        subscription=b"\0\1" + schema.write(subscription, 1, False),
        assignment=b"\0\1" + schema.write(assignment, 1, False),
    )
    joining = MemberMetadata(member_id="n", client_id="d")
    value = GroupMetadataValue(protocol_type="consumer", generation=4, members=[member, joining])
    found = written(
        documents(classic_group_record("g", value), classic_group_record("g", None), classic_group_record("x", value)),
        {"g": "t"},
    )
    shares = {"m": Share("c", frozenset({1, 2}), frozenset({1})), "n": Share("d", frozenset())}
    assert found == {"g": [Generation(1000, 4, shares), Generation(1001, -1, {})]}


def test_what_a_member_of_the_newer_protocol_has_is_read_with_its_client() -> None:
    topic = uuid.UUID(int=1)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=3,
        previous_member_epoch=2,
        state=2,
        assigned_partitions=[OwnedTopicPartitions(topic_id=topic, partitions=[0])],
        partitions_pending_revocation=[OwnedTopicPartitions(topic_id=topic, partitions=[1])],
    )
    said = ConsumerGroupMemberMetadataValue(client_id="c")
    records = [
        ConsumerGroupRecord(ConsumerRecordType.MEMBER, "g", "m", said),
        ConsumerGroupRecord(ConsumerRecordType.CURRENT, "g", "m", value),
        ConsumerGroupRecord(ConsumerRecordType.CURRENT, "g", "m", None),
    ]
    found = written(documents(*(consumer_group_record(record) for record in records)), {"g": "t"})
    assert found == {"g": [Current(1001, 3, "m", "c", frozenset({0}), frozenset({1})), Current(1002, -1, "m", "c")]}


def test_answers_are_read_from_the_log_among_other_lines() -> None:
    said = {"api": "JoinGroup", "group": "g", "client": "c", "member": "m", "epoch": 2, "error": "NONE", "ms": 250}
    log = [
        "2026-11-21 15:20:45,100 INFO something else\n",
        f"2026-11-21 15:20:45,933 DEBUG {json.dumps(said)}\n",
        "Traceback (most recent call last):\n",
    ]
    (only,) = answers(log)["g"]
    assert only == Answer(only.at_ms - 250, only.at_ms, "JoinGroup", "c", "m", 2, "NONE")
    assert only.at_ms % 1000 == 933
