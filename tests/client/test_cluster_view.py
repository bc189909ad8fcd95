import uuid

from moldau.client.cluster_view import ClusterView
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID = uuid.UUID(int=5)


def said(*topics: MetadataResponseTopic, brokers: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=b, host=f"h{b}", port=9092) for b in brokers],
        cluster_id="c",
        controller_id=1,
        topics=list(topics),
    )


def led(leader: int, epoch: int = 0, name: str = "t", topic_id: uuid.UUID = ID) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=[partition])


def gone(name: str) -> MetadataResponseTopic:
    return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_leader_is_who_the_brokers_say() -> None:
    view = ClusterView()
    view.apply(said(led(2)), everything=False)
    assert view.leader(TopicPartition("t", 0)) == 2
    assert view.brokers[2] == Address("h2", 9092)


def test_why_there_is_no_leader_is_an_error_code() -> None:
    view = ClusterView()
    assert view.leader(TopicPartition("t", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    view.apply(said(led(-1), gone("u")), everything=False)
    assert view.leader(TopicPartition("t", 0)) is ErrorCode.LEADER_NOT_AVAILABLE
    assert view.leader(TopicPartition("t", 1)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert view.leader(TopicPartition("u", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    view.apply(said(led(3)), everything=False)
    assert view.leader(TopicPartition("t", 0)) is ErrorCode.LEADER_NOT_AVAILABLE


def test_an_older_leader_epoch_does_not_replace_a_newer_one() -> None:
    view = ClusterView()
    view.apply(said(led(2, epoch=7)), everything=False)
    view.apply(said(led(1, epoch=6)), everything=False)
    assert view.leader(TopicPartition("t", 0)) == 2
    view.apply(said(led(1, epoch=8)), everything=False)
    assert view.leader(TopicPartition("t", 0)) == 1


def test_a_topic_that_was_made_anew_begins_with_its_own_epochs() -> None:
    view = ClusterView()
    view.apply(said(led(2, epoch=7)), everything=False)
    view.apply(said(led(1, epoch=0, topic_id=uuid.UUID(int=6))), everything=False)
    assert view.leader(TopicPartition("t", 0)) == 1


def test_a_topic_that_a_full_answer_does_not_name_is_forgotten() -> None:
    view = ClusterView()
    view.apply(said(led(1), led(1, name="u")), everything=True)
    view.apply(said(led(1)), everything=True)
    assert list(view.topics) == ["t"]


def test_a_topic_that_comes_back_is_no_longer_missing() -> None:
    view = ClusterView()
    view.apply(said(gone("t")), everything=False)
    view.apply(said(led(1)), everything=False)
    assert view.missing == {}
