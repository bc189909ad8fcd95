"""ACLs in the store: the nodes of Kafka 2.8, read and written."""

import json
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.tiers import examples
from moldau.cluster.state import acls, layout
from moldau.cluster.state.acls import DENY_ALL, AclEntry, AclPattern, AclPatternType, AclPermission, path_of, pattern_of
from moldau.cluster.state.image import Image
from moldau.cluster.state.image_after import image_after, nodes_after
from moldau.metadata_store.store import AskNodes, Create, Delete, Node, Question, Set, Written, checked, result_of

TOPIC, GROUP = 2, 3
ANN = AclEntry("User:ann", "*", 3, AclPermission.ALLOW)
BOB = AclEntry("User:bob", "10.0.0.7", 9, AclPermission.DENY)


def test_a_node_is_where_and_what_kafka_writes() -> None:
    literal, prefixed = AclPattern(TOPIC, "t"), AclPattern(5, "x", AclPatternType.PREFIXED)
    assert path_of(literal) == "/kafka-acl/Topic/t"
    assert path_of(prefixed) == "/kafka-acl-extended/prefixed/TransactionalId/x"
    assert acls.parents_of(prefixed) == [
        "/kafka-acl-extended", "/kafka-acl-extended/prefixed", "/kafka-acl-extended/prefixed/TransactionalId",
    ]  # fmt: skip
    [step] = layout.acls_changed(literal, [ANN, BOB], None)
    assert isinstance(step, Create)
    assert json.loads(step.data) == {
        "version": 1,
        "acls": [
            {"principal": "User:ann", "permissionType": "Allow", "operation": "Read", "host": "*"},
            {"principal": "User:bob", "permissionType": "Deny", "operation": "ClusterAction", "host": "10.0.0.7"},
        ],
    }
    assert acls.entries_of(Node(step.data, 0), step.path) == (ANN, BOB)
    assert isinstance(layout.acls_changed(literal, [ANN], 3)[0], Set)
    assert layout.acls_changed(literal, [], 3) == [Delete(step.path, 3)]
    assert layout.acls_changed(literal, [], None) == []


@settings(max_examples=examples(30, 100))
@given(st.sampled_from(sorted(acls.RESOURCE_TYPES)), st.text(min_size=1), st.sampled_from(AclPatternType))
def test_every_name_has_a_node(kind: int, name: str, pattern_type: AclPatternType) -> None:
    pattern = AclPattern(kind, name, pattern_type)
    path = path_of(pattern)
    assert pattern_of(checked(path)) == pattern
    last = path.rpartition("/")[2]
    assert last.strip(".") and not any(ord(c) < 32 or 0xD800 <= ord(c) <= 0xF8FF or ord(c) >= 0xFFF0 for c in last)


@pytest.mark.parametrize("name", ["orders", "a.b_c-1", "*", "User:ann", "ünïcode", "a b"])
def test_names_that_zookeeper_takes_are_not_quoted(name: str) -> None:
    assert path_of(AclPattern(GROUP, name)) == f"/kafka-acl/Group/{name}"


@pytest.mark.parametrize("name", ["50%", "%41", "%2f", "a%zz"])
def test_a_name_that_a_tool_has_not_quoted_is_taken_as_it_is(name: str) -> None:
    assert pattern_of(f"/kafka-acl/Group/{name}") == AclPattern(GROUP, name)
    assert path_of(AclPattern(GROUP, "A")) == "/kafka-acl/Group/A"


def test_two_nodes_of_one_name_have_the_entries_of_both() -> None:
    data = {path: layout.acls_changed(AclPattern(GROUP, "x"), [entry], None)[0].data for path, entry in
            (("/kafka-acl/Group/50%", ANN), ("/kafka-acl/Group/50%25", BOB))}  # fmt: skip
    children = {"/kafka-acl": ["Group"], "/kafka-acl/Group": ["50%", "50%25"]}

    def answer(question: Question) -> object:
        if isinstance(question, AskNodes):
            return [Node(data[path], 0) for path in question.paths]
        return children.get(question.path, [])

    assert result_of(acls.read_acls(), answer) == {AclPattern(GROUP, "50%"): (ANN, BOB)}


NO_RESOURCES = (
    "/kafka-acl",
    "/kafka-acl/Topic",
    "/kafka-acl/Planet/t",
    "/kafka-acl/topic/t",
    "/kafka-acl-extended/x/Topic/t",
)


@pytest.mark.parametrize("path", NO_RESOURCES)
def test_other_nodes_are_about_no_resource(path: str) -> None:
    assert pattern_of(path) is None


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'{"version": 1}',
        b'{"acls": [{"principal": "User:ann", "permissionType": "Allow", "operation": "Fly", "host": "*"}]}',
        b'{"acls": [{"principal": 1, "permissionType": "Allow", "operation": "Read", "host": "*"}]}',
    ],
)
def test_a_node_that_cannot_be_read_denies_everything(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert acls.entries_of(Node(data, 0), "/kafka-acl/Topic/t") == DENY_ALL
    assert "/kafka-acl/Topic/t" in caplog.text


def test_names_of_operations_are_read_in_any_case_and_entries_once() -> None:
    one = {"principal": "User:ann", "permissionType": "ALLOW", "operation": "READ", "host": "*"}
    assert acls.entries_of(Node(json.dumps({"acls": [one, one]}).encode(), 0), "/kafka-acl/Topic/t") == (ANN,)
    assert acls.entries_of(Node(b"", 0), "/kafka-acl/Topic/t") == ()


def test_an_image_follows_from_the_nodes_that_were_written() -> None:
    image, pattern = Image("c"), AclPattern(TOPIC, "t", AclPatternType.PREFIXED)
    steps = layout.acls_changed(pattern, [ANN], None)
    after, names = image_after(image, nodes_after(steps, [Written(0, 1)]))
    assert after.acls == {pattern: (ANN,)} and not names
    gone, _ = image_after(after, nodes_after(layout.acls_changed(pattern, [], 0), [None]))
    assert gone.acls == {}
    assert [step.path for step in layout.acls_of(after)] == [*acls.parents_of(pattern), path_of(pattern)]
