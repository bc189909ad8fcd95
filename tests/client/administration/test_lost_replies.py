"""A broker does what an admin client asks for, and the reply is lost: the next attempt finds it done."""

from collections.abc import Callable

import pytest

from moldau.client.administration.admin import Admin
from moldau.errors import InvalidPartitions, KafkaError, TopicAlreadyExists, UnknownTopicOrPartition
from moldau.testing import Broker

CALLS: list[tuple[str, Callable[[Admin], object], type[KafkaError]]] = [
    ("CreateTopics", lambda admin: admin.create_topic("t"), TopicAlreadyExists),
    ("CreatePartitions", lambda admin: admin.create_partitions("t", 3), InvalidPartitions),
    ("DeleteTopics", lambda admin: admin.delete_topic("t"), UnknownTopicOrPartition),
]


def test_the_error_of_the_next_attempt_says_that_the_call_may_have_done_it() -> None:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        for api, call, error in CALLS:
            with broker.fault(api, drop="after", times=1), pytest.raises(error, match="this call may have done it"):
                call(admin)
            with pytest.raises(error) as refused:
                call(admin)
            assert "lost" not in str(refused.value)
