"""`kafka-acls` of the newest Kafka, as its users call it, and what the rights that it gives are to our own client."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau import Admin
from moldau.admin import Acl
from moldau.errors import TopicAuthorizationFailed
from tests.clients.kafka_tools import ACLS, Tools

pytestmark = pytest.mark.check
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANYBODY = "User:ANONYMOUS"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Broker]:
    """A broker whose only user, who has not logged in, may change ACLs, and nothing else."""
    settings = {"authorizer.class.name": STANDARD, "super.users": ANYBODY}
    broker = Broker(tmp_path, settings)
    broker.start()
    with Admin(broker.address) as admin:
        admin.create_topics(["orders"])
        acls = [Acl("cluster", "kafka-cluster", ANYBODY, "alter"), Acl("cluster", "kafka-cluster", ANYBODY, "describe")]
        admin.create_acls(acls)
    broker.stop()
    broker.settings["super.users"] = "User:root"
    broker.start()
    yield broker
    broker.stop()


def test_rights_are_added_listed_and_removed_and_count_at_once(guarded: Broker, tmp_path: Path) -> None:
    with Tools(tmp_path) as tools, Admin(guarded.address) as admin:
        tool: Callable[..., str] = lambda *options: tools.run(ACLS, "--bootstrap-server", guarded.address, *options)  # noqa: E731
        with pytest.raises(TopicAuthorizationFailed):
            admin.describe_topics(["orders"])
        described = ("--allow-principal", ANYBODY, "--operation", "Describe", "--topic", "or")
        added = tool("--add", *described, "--resource-pattern-type", "prefixed")
        assert "(principal=User:ANONYMOUS, host=*, operation=DESCRIBE, permissionType=ALLOW)" in added
        assert list(admin.describe_topics(["orders"])) == ["orders"]
        listed = tool("--list", "--topic", "orders", "--resource-pattern-type", "match")
        assert "ResourcePattern(resourceType=TOPIC, name=or, patternType=PREFIXED)" in listed
        tool("--add", "--deny-principal", ANYBODY, "--deny-host", "127.0.0.1", "--operation", "All", "--topic", "*")
        with pytest.raises(TopicAuthorizationFailed):
            admin.describe_topics(["orders"])
        tool("--remove", "--force", "--topic", "*")
        tool("--add", "--allow-principal", "User:bob", "--producer", "--topic", "t", "--transactional-id", "x")
        tool("--add", "--allow-principal", "User:bob", "--consumer", "--topic", "t", "--group", "g")
        of_bob = [one for one in admin.describe_acls() if one.principal == "User:bob"]
        assert {(one.resource_type, one.operation) for one in of_bob} == {
            ("topic", "write"), ("topic", "describe"), ("topic", "create"), ("topic", "read"), ("group", "read"),
            ("transactional_id", "write"), ("transactional_id", "describe"),
        }  # fmt: skip
