"""Three brokers with access rights: none of them needs an ACL for the others, and clients have what they were given."""

import json
from pathlib import Path

import pytest

from harness.replicated_brokers import ReplicatedBrokers
from moldau import Admin, Consumer, Producer
from moldau.admin import Acl
from moldau.errors import TopicAuthorizationFailed

pytestmark = pytest.mark.check
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANYBODY = "User:ANONYMOUS"
SETTINGS = {
    "authorizer.class.name": STANDARD,
    "super.users": ANYBODY,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


def test_clients_have_their_rights_and_brokers_theirs(tmp_path: Path) -> None:
    brokers = ReplicatedBrokers(tmp_path, SETTINGS)
    kinds = {"topic": "t", "group": "g", "transactional_id": "x"}
    try:
        brokers.start()
        with Admin(brokers.address) as admin:
            admin.create_topics(["t", "secret"])
            admin.create_acls([Acl(kind, name, ANYBODY, "all") for kind, name in kinds.items()])  # type: ignore[arg-type]
        brokers.stop()
        for broker in brokers.brokers.values():
            broker.settings |= {"super.users": "User:root", "audit.log.file": str(broker.folder / "audit.jsonl")}
        brokers.start()
        with Producer(brokers.address, transactional_id="x") as producer, producer.transaction():
            for number in range(10):
                producer.send("t", b"%d" % number)
        with Consumer(brokers.address, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            records = iter(consumer)
            assert sorted(int(next(records).value or b"") for _ in range(10)) == [*range(10)]
        brokers.kill_and_start()
        brokers.wait_until_whole()
        with Admin(brokers.address) as admin, pytest.raises(TopicAuthorizationFailed):
            admin.describe_topics(["secret"])
        brokers.stop()  # a killed broker may lose the denials that wait for the disk
    finally:
        brokers.kill()
    files = [broker.folder / "audit.jsonl" for broker in brokers.brokers.values()]
    denied = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {(one["resource"], one["name"]) for one in denied} == {("Topic", "secret")}
