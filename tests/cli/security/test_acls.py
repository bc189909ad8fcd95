"""`moldau acls`: who may do what, by the words of `kafka-acls`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.cli.conftest import Moldau

ANN = ("add", "--principal", "User:ann")
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS;User:root"}
    broker = Broker(tmp_path_factory.mktemp("guarded"), settings)
    broker.start()
    yield broker
    broker.stop()


class Acls:
    def __init__(self, moldau: Moldau, broker: Broker):
        self._moldau, self._broker = moldau, broker

    def __call__(self, command: str, *words: str):  # type: ignore[no-untyped-def]
        return self._moldau("acls", command, *words, "-b", self._broker.address)


@pytest.fixture
def acls(offline: Moldau, guarded: Broker) -> Acls:
    made = Acls(offline, guarded)
    for one in made("list", "--json").json:
        made("remove", "--principal", one["principal"])
    return made


def test_rights_are_added_listed_and_removed(acls: Acls) -> None:
    added = acls("add", "--principal", "User:ann", "--operation", "Read", "--topic", "orders", "--group", "billing")
    assert added.lines == [
        "added: User:ann may Read on topic orders",
        "added: User:ann may Read on group billing",
    ]
    denied = acls("add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--topic", "*")
    assert denied.lines == ["added: User:bob may not do everything on every topic from 10.0.0.7"]
    assert [line.split() for line in acls("list").lines] == [
        ["RESOURCE", "NAME", "PATTERN", "PERMISSION", "PRINCIPAL", "HOST", "OPERATION"],
        ["topic", "*", "literal", "deny", "User:bob", "10.0.0.7", "All"],
        ["topic", "orders", "literal", "allow", "User:ann", "*", "Read"],
        ["group", "billing", "literal", "allow", "User:ann", "*", "Read"],
    ]
    assert len(acls("list", "--topic", "orders").lines) == 2
    assert len(acls("list", "--topic", "orders", "--resource-pattern-type", "match").lines) == 3
    removed = acls("remove", "--principal", "User:ann", "--topic", "orders")
    assert removed.lines == ["removed: User:ann may Read on topic orders", "removed 1 ACL"]
    assert [one["name"] for one in acls("list", "--json").json] == ["*", "billing"]
    assert acls("remove", "--topic", "orders", "--resource-pattern-type", "match", "--permission", "allow").lines == [
        "removed 0 ACLs"
    ]


def test_a_principals_rights_are_selected_by_their_pattern_too(acls: Acls) -> None:
    acls(*ANN, "--operation", "Read", "--topic", "orders")
    acls(*ANN, "--operation", "Read", "--topic", "or", "--resource-pattern-type", "prefixed")
    of_ann = ("--principal", "User:ann")
    prefixed = (*of_ann, "--resource-pattern-type", "prefixed")
    assert [one["name"] for one in acls("list", *prefixed, "--json").json] == ["or"]
    assert acls("remove", *prefixed).lines[-1] == "removed 1 ACL"
    assert [one["name"] for one in acls("list", "--json").json] == ["orders"]
    assert acls("remove", *of_ann).lines[-1] == "removed 1 ACL"


def test_what_a_producer_and_a_consumer_need(acls: Acls) -> None:
    made = acls(
        "add", "--principal", "User:ann", "--producer", "--topic", "or", "--transactional-id", "or",
        "--resource-pattern-type", "prefixed", "--json",
    ).json  # fmt: skip
    assert [(one["resource_type"], one["pattern"], one["operation"]) for one in made] == [
        ("topic", "prefixed", "write"),
        ("topic", "prefixed", "describe"),
        ("topic", "prefixed", "create"),
        ("transactional_id", "prefixed", "write"),
        ("transactional_id", "prefixed", "describe"),
    ]
    made = acls("add", "--principal", "User:bob", "--consumer", "--topic", "t", "--group", "g", "--json").json
    assert [(one["resource_type"], one["operation"]) for one in made] == [
        ("topic", "read"), ("topic", "describe"), ("group", "read"),
    ]  # fmt: skip


def test_it_explains_which_rule_decides(acls: Acls) -> None:
    acls(
        "add", "--principal", "User:ann", "--operation", "Write", "--topic", "or", "--resource-pattern-type", "prefixed"
    )
    acls("add", "--deny-principal", "User:ann", "--operation", "Read", "--topic", "orders")
    asked = ("--topic", "orders", "--principal", "User:ann")
    allowed = acls("explain", *asked, "--operation", "Describe")
    why = "since User:ann may Write on each topic that begins with or"
    assert allowed.code == 0
    assert allowed.lines == [f"allowed: User:ann from 127.0.0.1: Describe on topic orders, {why}"]
    denied = acls("explain", *asked, "--operation", "Read", "--host", "10.0.0.7", "--json")
    assert denied.code == 1
    [told] = denied.json
    assert (told["allowed"], told["rule"], told["acl"]["permission"]) == (False, "Acl", "deny")
    assert acls("explain", *asked, "--operation", "Delete").lines == [
        "denied: User:ann from 127.0.0.1: Delete on topic orders, since no ACL allows it"
    ]
    root = acls("explain", "--cluster", "--principal", "User:root", "--operation", "ALTER_CONFIGS")
    assert root.lines[0].endswith("ALTER_CONFIGS on the cluster, since User:root is one of super.users")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "--topic", "t"], "give --principal User:NAME, or --deny-principal"),
        (["add", "--principal", "User:ann"], "give a resource: --topic"),
        (["add", "--principal", "User:ann", "--topic", "t", "--operation", "Fly"], "'Fly' is not one of All, Read"),
        (
            [*ANN, "--cluster", "--operation", "Read"],
            "Read is not an operation on a cluster",
        ),
        (["add", "--principal", "User:ann", "--consumer", "--topic", "t"], "--consumer needs a --group"),
        (
            [*ANN, "--topic", "t", "--resource-pattern-type", "any"],
            "literal or prefixed, not",
        ),
        ([*ANN, "--topic", "t", "--host", "db.example.com"], "a host is an IP address, or * for all, not 'db.exa"),
        (["add", "--deny-principal", "User:b", "--deny-host", "10.0.0.0/8", "--topic", "t"], "are not looked up"),
        ([*ANN, "--deny-host", "10.0.0.7", "--topic", "t"], "--deny-host goes with --deny-principal"),
        (["add", "--deny-principal", "User:b", "--host", "10.0.0.7", "--topic", "t"], "--host goes with --principal"),
        ([*ANN, "--producer", "--topic", "t", "--group", "g"], "--group gets no right by --producer"),
        ([*ANN, "--consumer", "--topic", "t", "--group", "g", "--cluster"], "--cluster gets no right by"),
        (["remove"], "give a resource, such as --topic NAME"),
        (["remove", "--topic", "t", "--permission", "maybe"], "--permission is allow or deny, not 'maybe'"),
        (["list", "--topic", "t", "--resource-pattern-type", "regex"], "match or any, not 'regex'"),
        (["explain", "--principal", "User:ann"], "give --principal User:NAME, --operation NAME"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(acls: Acls, words: list[str], why: str) -> None:
    done = acls(*words)
    assert done.code == 2 and why in done.error


def test_a_wrong_principal_is_the_brokers_sentence(acls: Acls) -> None:
    done = acls("add", "--principal", "ann", "--topic", "t")
    assert done.code == 1 and "a principal is TYPE:NAME, such as User:ann, not ann" in done.error


def test_a_broker_without_access_rights_says_so(offline: Moldau, tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.start()
    try:
        done = offline("acls", "list", "-b", broker.address)
        assert done.code == 1 and "no authorizer is configured" in done.error
    finally:
        broker.stop()
