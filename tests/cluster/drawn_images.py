"""Random images of one cluster, and random later ones that keep some parts and change others."""

import uuid
from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.quotas import QuotaOwner

NAMES = [f"topic-{number}" for number in range(5)]
NUMBERS = st.integers(0, 3)
TEXTS = st.text("ab", max_size=2)
SETTINGS = st.dictionaries(TEXTS, TEXTS, max_size=3)
REPLICAS = st.lists(NUMBERS, max_size=3, unique=True).map(tuple)


def every_field(made: Any, /, **drawn: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Fails when a field was added that is not drawn: changes and their messages have to carry it too."""
    known = getattr(made, "_fields", None) or tuple(one.name for one in fields(made))
    assert set(known) == drawn.keys(), f"{made.__name__} has other fields than those drawn here"
    return st.builds(made, **drawn)


ENDPOINTS = every_field(Endpoint, name=TEXTS, protocol=TEXTS, host=TEXTS, port=st.integers(0, 65535))
BROKERS = every_field(
    BrokerImage,
    id=NUMBERS,
    endpoints=st.lists(ENDPOINTS, min_size=1, max_size=2).map(tuple),
    rack=st.none() | TEXTS,
    directories=st.lists(TEXTS, max_size=2).map(tuple),
    epoch=st.integers(-1, 2**63 - 1),
    leaving=st.booleans(),
)
PARTITIONS = every_field(
    PartitionImage,
    leader=st.integers(-1, 3),
    leader_epoch=st.integers(0, 2**31 - 1),
    replicas=REPLICAS,
    isr=REPLICAS,
    directories=st.lists(TEXTS, max_size=3).map(tuple),
    made=st.booleans(),
    partition_epoch=st.integers(0, 2**31 - 1),
    elr=REPLICAS,
    last_elr=REPLICAS,
    adding_replicas=REPLICAS,
    removing_replicas=REPLICAS,
)
TOPICS = every_field(
    TopicImage,
    name=st.sampled_from(NAMES),
    id=st.integers(1, 3).map(lambda number: uuid.UUID(int=number)),
    partitions=st.lists(PARTITIONS, min_size=1, max_size=4).map(tuple),
    overrides=SETTINGS,
)
PATTERNS = every_field(
    AclPattern, resource_type=st.integers(2, 7), name=TEXTS, pattern_type=st.sampled_from(AclPatternType)
)
ENTRIES = every_field(
    AclEntry,
    principal=TEXTS,
    host=TEXTS,
    operation=st.integers(2, 15),
    permission=st.sampled_from(AclPermission),
)
ENTITIES = every_field(QuotaOwner, user=st.none() | TEXTS, client_id=st.none() | TEXTS, ip=st.none() | TEXTS)
VALUES = st.dictionaries(TEXTS, st.floats(0, 1e9), min_size=1, max_size=2)
OWNERS = st.dictionaries(st.sampled_from(["1", "2", "<default>"]), SETTINGS)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "controller_id": st.integers(-1, 3),
    "controller_epoch": st.integers(0, 9),
    "brokers": st.lists(BROKERS, max_size=4).map(lambda brokers: {one.id: one for one in brokers}),
    "broker_overrides": OWNERS,
    "group_overrides": OWNERS,
    "client_metrics": OWNERS,
    "acls": st.dictionaries(PATTERNS, st.lists(ENTRIES, min_size=1, max_size=2).map(tuple), max_size=3),
    "quotas": st.dictionaries(ENTITIES, VALUES, max_size=3),
    "deleted": st.dictionaries(st.uuids(), TEXTS, max_size=2),
}


def _with_topics(image: Image, topics: list[TopicImage]) -> Image:
    """Ids are made unique: no two topics ever have the same."""
    unique = {one.name: one._replace(id=uuid.UUID(int=one.id.int * 10 + NAMES.index(one.name))) for one in topics}
    by_id = {topic.id: topic for topic in unique.values()}
    return replace(image, topics=unique, topics_by_id=by_id)


IMAGES = st.builds(
    _with_topics,
    every_field(
        Image,
        cluster_id=st.just("c"),
        topics=st.just({}),
        topics_by_id=st.just({}),
        **PARTS,
    ),
    st.lists(TOPICS, max_size=5),
)


@st.composite
def later(draw: st.DrawFn, image: Image) -> Image:
    """An image some changes later: each part is the same object as before, or another."""
    other = draw(IMAGES)
    changed = draw(st.sets(st.sampled_from(sorted(PARTS))))
    after = replace(image, **{name: getattr(other, name) for name in changed})
    for name, topic in other.topics.items():
        old = after.topics.get(name)
        kind = draw(st.sampled_from(["keep", "delete", "replace", "settings", "grow", "one partition"]))
        if kind == "replace" or (old is None and kind != "keep"):
            after = after.with_topics({name: topic})
        elif old is None or kind == "keep":
            pass
        elif kind == "delete":
            after = after.with_topics({name: None})
        elif kind == "settings":
            after = after.with_topics({name: old._replace(overrides=topic.overrides)})
        elif kind == "grow":
            after = after.with_topics({name: old._replace(partitions=old.partitions + topic.partitions)})
        else:
            partitions = (topic.partitions[0], *old.partitions[1:])
            after = after.with_topics({name: old._replace(partitions=partitions)})
    return after
