"""Quotas in the store: the nodes that Kafka used, and what else is in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.cluster.controlling.quota_changes import QuotaChange, operations
from moldau.cluster.state import layout, quotas
from moldau.cluster.state.change_messages import from_message, to_message
from moldau.cluster.state.image import Image
from moldau.cluster.state.image_after import image_after, nodes_after
from moldau.cluster.state.image_changes import applied, difference, whole
from moldau.cluster.state.quotas import DEFAULT, QuotaOwner
from moldau.cluster.state.reading import read_image
from moldau.cluster.users.credentials import changed, read_iterations, user_path
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Create, nodes_at
from moldau.protocol import schema
from moldau.protocol.messages.follow_cluster import FollowedChange
from moldau.transport.sasl.scram import Credential

ALICE = QuotaOwner("alice")


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        (ALICE, "/config/users/alice"),
        (QuotaOwner(DEFAULT), "/config/users/<default>"),
        (QuotaOwner("<default>"), "/config/users/%3Cdefault%3E"),
        (QuotaOwner("CN=a b*~,O=ü/x"), "/config/users/CN%3Da%20b%2A%7E%2CO%3D%C3%BC%2Fx"),
        (QuotaOwner("alice", DEFAULT), "/config/users/alice/clients/<default>"),
        (QuotaOwner(DEFAULT, "app 1"), "/config/users/<default>/clients/app%201"),
        (QuotaOwner(client_id=".."), "/config/clients/%2E%2E"),
        (QuotaOwner(ip="10.0.0.1"), "/config/ips/10.0.0.1"),
        (QuotaOwner(ip=DEFAULT), "/config/ips/<default>"),
    ],
)
def test_an_entity_has_the_node_that_kafka_gives_it(entity: QuotaOwner, path: str) -> None:
    assert quotas.path_of(entity) == path
    assert quotas.entity_of(path) == entity


names = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(names, names)
def test_every_entity_is_known_again_by_its_node(user: str | None, client_id: str | None) -> None:
    entity = QuotaOwner(user, client_id)
    if entity != QuotaOwner():
        assert quotas.entity_of(quotas.path_of(entity)) == entity


def test_other_nodes_are_no_entities() -> None:
    for path in ("/config/users", "/config/users/a/clients", "/config/topics/t", "/config/users/a/b/c"):
        assert quotas.entity_of(path) is None


CHANGES = [
    [QuotaChange(ALICE, {quotas.PRODUCE: 1e7, quotas.REQUEST: 12.5})],
    [QuotaChange(QuotaOwner("bob", "app"), {quotas.FETCH: 5}), QuotaChange(QuotaOwner(DEFAULT), {quotas.FETCH: 7})],
    [QuotaChange(QuotaOwner("alice", DEFAULT), {quotas.FETCH: 5}), QuotaChange(ALICE, {quotas.PRODUCE: None})],
    [QuotaChange(QuotaOwner(client_id="app"), {quotas.MUTATION: 0.5}), QuotaChange(ALICE, {quotas.REQUEST: None})],
    [QuotaChange(QuotaOwner(ip="::1"), {quotas.CONNECTION: 0}), QuotaChange(ALICE, {quotas.MUTATION: None})],
    [QuotaChange(QuotaOwner("bob", "app"), {quotas.FETCH: None})],
]


def test_changes_are_in_the_image_in_the_store_and_with_followers() -> None:
    store = EmbeddedStore.in_memory()
    store.multi(layout.new_cluster("c"))
    image = follower = Image("c")
    for changes in CHANGES:
        paths = [path for one in changes for path in (*quotas.parents_of(one.entity), quotas.path_of(one.entity))]
        steps = operations(changes, dict(zip(paths, store.read(nodes_at(paths)), strict=True)))
        before, image = image, image_after(image, nodes_after(steps, store.multi(steps)))[0]
        assert store.read(read_image()) == image
        data = schema.write(to_message(difference(before, image)), 0, True)
        follower = applied(follower, from_message(schema.read(FollowedChange, 0, True, data)[0]))[0]
        assert follower == image
    assert image.quotas == {
        QuotaOwner(DEFAULT): {quotas.FETCH: 7},
        QuotaOwner("alice", DEFAULT): {quotas.FETCH: 5},
        QuotaOwner(client_id="app"): {quotas.MUTATION: 0.5},
        QuotaOwner(ip="::1"): {quotas.CONNECTION: 0},
    }
    assert applied(Image("c"), whole(image))[0] == image
    copy = EmbeddedStore.in_memory()
    copy.multi(layout.whole(image))
    assert copy.read(read_image()) == image


def test_what_else_a_node_has_stays_and_values_are_written_as_kafka_does() -> None:
    store = EmbeddedStore.in_memory()
    store.multi(layout.new_cluster("c"))
    path = quotas.path_of(ALICE)
    scram = b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x","consumer_byte_rate":"soon","producer_byte_rate":"5"}}'
    store.multi([Create(path, scram)])
    (node,) = store.read(nodes_at([path]))
    assert quotas.quotas_in(node, path) == {quotas.PRODUCE: 5}
    change = QuotaChange(ALICE, {quotas.PRODUCE: None, quotas.FETCH: 1e6, quotas.REQUEST: 200.0})
    store.multi(operations([change], {path: node}))
    (after,) = store.read(nodes_at([path]))
    assert after is not None
    assert after.data == (
        b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x","consumer_byte_rate":"1000000","request_percentage":"200.0"}}'
    )


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    assert operations([QuotaChange(ALICE, {quotas.PRODUCE: None})], {quotas.path_of(ALICE): None}) == []


def test_a_user_whose_client_ids_have_quotas_may_have_a_password_too() -> None:
    store = EmbeddedStore.in_memory()
    store.multi(layout.new_cluster("c"))
    change = QuotaChange(QuotaOwner("alice", "app"), {quotas.FETCH: 5})
    paths = [*quotas.parents_of(change.entity), quotas.path_of(change.entity)]
    store.multi(operations([change], dict.fromkeys(paths)))
    (node,) = store.read(nodes_at([user_path("alice")]))
    credential = Credential(b"salt", b"stored", b"server", 4096)
    store.multi([changed("alice", node, {"SCRAM-SHA-256": credential})])
    assert store.read(read_iterations(None)) == {"alice": {"SCRAM-SHA-256": 4096}}
    image = store.read(read_image())
    assert image is not None
    assert image.quotas == {change.entity: {quotas.FETCH: 5}}
