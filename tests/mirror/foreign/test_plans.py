"""What the target gets: topics, settings, rights and positions of groups, by MirrorMaker's rules."""

import re

import pytest

from moldau.client.administration.acls import Acl
from moldau.mirror.foreign.group_checkpoints import ToldCheckpoints, news, of_group, selects, translated
from moldau.mirror.foreign.mirror_records import GroupCheckpoint, checkpoint_record, read_checkpoint
from moldau.mirror.foreign.offset_syncs import OffsetTranslation
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.foreign.remote_acls import rights_to_add
from moldau.mirror.foreign.remote_topics import plan_remote
from moldau.mirror.planning import SourceTopic, TargetTopic, TopicPlan
from moldau.names import OffsetAndMetadata, TopicPartition

TP, THERE = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
OWN = {
    "retention.ms": "5",
    "min.insync.replicas": "2",
    "message.timestamp.type": "LogAppendTime",
    "unclean.leader.election.enable": "true",
    "message.format.version": "2.0",
    "remote.storage.enable": "true",
    "leader.replication.throttled.replicas": "0:1",
}


def planned(source: SourceTopic, target: TargetTopic | None) -> TopicPlan:
    return plan_remote("orders", "A.orders", source, target, "target-id")


def test_a_topic_is_made_with_its_partitions_settings_except_those_of_a_cluster() -> None:
    assert planned(SourceTopic(3, OWN, ""), None) == TopicPlan(make=True, changes={"retention.ms": "5"})


def test_a_topic_is_expanded_and_configured_as_its_source() -> None:
    has = TargetTopic(2, {"retention.ms": "6", "segment.bytes": "100", "min.insync.replicas": "1"})
    wanted = planned(SourceTopic(3, OWN, ""), has)
    assert wanted == TopicPlan(expand_to=3, changes={"retention.ms": "5", "segment.bytes": None})
    assert planned(SourceTopic(3, {}, ""), TargetTopic(3, {})) == TopicPlan()


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        (SourceTopic(3, {}, "target-id/x"), None, "orders is a mirror of the target cluster itself"),
        (
            SourceTopic(3, {}, ""),
            TargetTopic(4, {}),
            "A.orders has 4 partitions in the target cluster and orders has 3",
        ),
        (SourceTopic(3, {}, ""), TargetTopic(3, {"mirror.source": "x/y"}), "A.orders is a mirror of its own"),
    ],
)
def test_a_topic_that_cannot_be_mirrored_has_a_sentence(
    source: SourceTopic, target: TargetTopic | None, sentence: str
) -> None:
    assert planned(source, target).refused.startswith(sentence)


@pytest.mark.parametrize(
    ("acl", "there"),
    [
        (Acl("topic", "orders", "User:a", "read"), Acl("topic", "A.orders", "User:a", "read")),
        (Acl("topic", "orders", "User:a", "all"), Acl("topic", "A.orders", "User:a", "read")),
        (
            Acl("topic", "orders", "User:a", "write", "deny"),
            Acl("topic", "A.orders", "User:a", "write", "deny"),
        ),
        (Acl("topic", "orders", "User:a", "write"), None),
        (Acl("topic", "ord", "User:a", "read", pattern="prefixed"), None),
        (Acl("topic", "payments", "User:a", "read"), None),
        (Acl("group", "orders", "User:a", "read"), None),
    ],
)
def test_nobody_may_write_to_a_mirror_because_of_its_source(acl: Acl, there: Acl | None) -> None:
    missing = rights_to_add([acl, acl], [], {"orders": "A.orders"})
    assert missing == ([] if there is None else [there])
    assert rights_to_add([acl], missing, {"orders": "A.orders"}) == []


@pytest.mark.parametrize(
    ("group", "is_selected"),
    [
        ("billing", True),
        ("console-consumer-5", False),
        ("connect-x", False),
        ("__internal", False),
        ("moldau-mirror-C", False),
        ("x" * 40_000, False),
    ],
)
def test_groups_of_tools_are_not_told(group: str, is_selected: bool) -> None:
    assert selects(group, re.compile(".*")) is is_selected and not selects(group, re.compile("nothing"))


def test_positions_of_groups_are_told_for_mirrored_topics_once_they_are_known() -> None:
    translation = OffsetTranslation()
    translation.add(TP, 100, 10)
    of_source = {TP: OffsetAndMetadata(150, "note"), TopicPartition("payments", 0): OffsetAndMetadata(5)}
    policy = ReplicationPolicy("A", "B")
    assert translated("billing", of_source, {"orders": ""}, policy, translation) == []
    translation.is_complete = True
    assert translated("billing", of_source, {"orders": ""}, policy, translation) == [
        GroupCheckpoint("billing", THERE, 150, 11, "note")
    ]
    assert translated("billing", of_source, {}, policy, translation) == []


def test_metadata_that_a_checkpoint_has_no_room_for_is_left_out_of_it() -> None:
    translation = OffsetTranslation()
    translation.add(TP, 100, 10)
    translation.is_complete = True
    for metadata, told in (("é" * 16_383, "é" * 16_383), ("é" * 16_384, "")):
        of_source = {TP: OffsetAndMetadata(100, metadata)}
        [one] = translated("billing", of_source, {"orders": ""}, ReplicationPolicy("A", "B"), translation)
        assert read_checkpoint(*checkpoint_record(one)) == GroupCheckpoint("billing", THERE, 100, 10, told)


@pytest.mark.parametrize(
    ("upstream", "downstream", "is_told"),
    [(150, 11, False), (160, 11, False), (160, 12, True), (160, 5, False), (140, 5, True)],
)
def test_a_group_goes_back_in_the_mirror_only_if_it_did_in_the_source(
    upstream: int, downstream: int, is_told: bool
) -> None:
    known: ToldCheckpoints = {("billing", THERE): GroupCheckpoint("billing", THERE, 150, 11, "")}
    found = GroupCheckpoint("billing", THERE, upstream, downstream, "")
    assert news([found], known) == ([found] if is_told else [])
    assert news([found], {}) == [found]
    assert of_group("billing", known) == {THERE: OffsetAndMetadata(11, "")} and of_group("other", known) == {}
