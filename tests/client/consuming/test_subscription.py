"""What may be subscribed to, and what is refused in one sentence."""

import re

import pytest

from harness.patience import Deadline
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.subscription import Subscription
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError
from moldau.names import TopicPartition


def test_a_text_is_one_topic_and_a_list_is_several() -> None:
    assert Subscription("t1").names == ["t1"]
    assert Subscription(["b", "a", "b"]).names == ["a", "b"]


def test_a_pattern_matches_whole_names_and_no_internal_topic() -> None:
    subscription = Subscription(re.compile("a.*|__.*"))
    subscription.match(["a", "ab", "ba", "__consumer_offsets"])
    assert subscription.names == ["a", "ab"]


@pytest.mark.parametrize("topics", [None, 5, b"t", [b"t"], ["t", 1], "", "a b", "x" * 250, re.compile(b"t")])
def test_anything_else_is_refused(topics: object) -> None:
    with pytest.raises(ConfigError):
        Subscription(topics)  # type: ignore[arg-type]


def test_a_subscription_by_pattern_takes_topics_in_that_are_created_later(
    bootstrap: str, topic: str, group: str
) -> None:
    pattern = re.compile(f"{topic}-pattern-[ab]")
    settings = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 200}
    with Consumer(bootstrap, group_id=group, **settings) as consumer, Producer(bootstrap) as producer:
        consumer.subscribe(pattern)
        found: list[str] = []
        for letter in "abc":
            with Admin(bootstrap) as admin:
                admin.create_topic(f"{topic}-pattern-{letter}", partitions=1)
            producer.send(f"{topic}-pattern-{letter}", b"hello")
            deadline = Deadline()
            while letter != "c" and len(found) < "abc".index(letter) + 1:
                assert not deadline.passed
                found += [record.topic for record in consumer.poll(200)]
        assert found == [f"{topic}-pattern-a", f"{topic}-pattern-b"]
        assert consumer.subscription() == found
        assert consumer.assignment() == [TopicPartition(name, 0) for name in found]
