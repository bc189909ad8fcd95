"""What a target gets for a mirrored topic: partitions and settings as in the source, or a sentence why not."""

import pytest

from moldau.mirror.planning import SourceTopic, TargetTopic, TopicPlan, plan

OWN = {
    "retention.ms": "5",
    "min.insync.replicas": "2",
    "remote.storage.enable": "true",
    "leader.replication.throttled.replicas": "0:1",
}
SOURCE = "source-id/topic"


def planned(source: SourceTopic, target: TargetTopic | None) -> TopicPlan:
    return plan("orders", source, SOURCE, target, "target-id")


def test_a_mirror_is_made_with_the_settings_of_its_source_except_those_of_a_cluster() -> None:
    wanted = TopicPlan(make=True, changes={"retention.ms": "5", "mirror.source": SOURCE})
    assert planned(SourceTopic(3, OWN, ""), None) == wanted


def test_a_mirror_is_expanded_and_configured_as_its_source() -> None:
    has = {"retention.ms": "6", "segment.bytes": "100", "min.insync.replicas": "1", "mirror.source": SOURCE}
    changes = {"retention.ms": "5", "segment.bytes": None}
    assert planned(SourceTopic(3, OWN, ""), TargetTopic(2, has)) == TopicPlan(expand_to=3, changes=changes)
    assert planned(SourceTopic(3, {}, ""), TargetTopic(3, {"mirror.source": SOURCE})) == TopicPlan()


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        (SourceTopic(3, {}, "target-id/x"), None, "orders is a mirror of the target cluster itself"),
        (SourceTopic(3, {}, ""), TargetTopic(3, {}), "orders exists in the target cluster and is not a mirror"),
        (SourceTopic(3, {}, ""), TargetTopic(3, {"mirror.source": f"failing-over/{SOURCE}"}), "orders fails over"),
        (SourceTopic(3, {}, ""), TargetTopic(3, {"mirror.source": "other-id/x"}), "orders mirrors another cluster"),
        (SourceTopic(3, {}, ""), TargetTopic(3, {"mirror.source": "source-id/x"}), "orders mirrors an earlier topic"),
        (SourceTopic(3, {}, ""), TargetTopic(4, {"mirror.source": SOURCE}), "orders has 4 partitions in the target"),
    ],
)
def test_a_topic_that_cannot_be_mirrored_has_a_sentence(
    source: SourceTopic, target: TargetTopic | None, sentence: str
) -> None:
    assert planned(source, target).refused.startswith(sentence)
