"""Topics have MirrorMaker's names in the target, and no record goes round in a circle."""

import re

import pytest

from moldau.mirror.foreign.policy import ReplicationPolicy

ANY = re.compile(".*")
DEFAULT = ReplicationPolicy("A", "B")
IDENTITY = ReplicationPolicy("A", "B", is_identity=True)


@pytest.mark.parametrize(
    ("topic", "remote", "kept"),
    [("orders", "A.orders", "orders"), ("C.orders", "A.C.orders", "C.orders"), ("heartbeats", "A.heartbeats", None)],
)
def test_a_mirrored_topic_has_the_alias_of_its_source_unless_names_stay(
    topic: str, remote: str, kept: str | None
) -> None:
    assert DEFAULT.remote(topic) == remote
    assert IDENTITY.remote(topic) == (kept or remote)


def test_internal_topics_have_the_names_of_mirror_maker() -> None:
    assert DEFAULT.offset_syncs() == "mm2-offset-syncs.A.internal"
    assert DEFAULT.checkpoints() == "A.checkpoints.internal"
    assert DEFAULT.positions() == "mm2-moldau-positions.A.internal"
    underscored = ReplicationPolicy("A", "B", "_")
    assert underscored.checkpoints() == "A_checkpoints_internal" and underscored.remote("x.y") == "A_x.y"


@pytest.mark.parametrize(
    ("topic", "origin", "original", "is_cycle"),
    [
        ("orders", None, "orders", False),
        ("B.orders", "B", "orders", True),
        ("C.B.orders", "C", "orders", True),
        ("C.orders", "C", "orders", False),
        ("orders.", None, "orders.", False),
        ("B..", None, "B..", False),
        (".orders", "", "orders", False),
    ],
)
def test_a_topic_that_came_from_the_target_is_a_cycle(
    topic: str, origin: str | None, original: str, is_cycle: bool
) -> None:
    assert (DEFAULT.origin(topic), DEFAULT.original(topic), DEFAULT.is_cycle(topic)) == (origin, original, is_cycle)
    assert IDENTITY.origin(topic) is None and not IDENTITY.is_cycle(topic)


def test_names_that_stay_show_a_circle_by_the_heartbeats_of_the_target() -> None:
    assert IDENTITY.loop(["orders", "heartbeats", "C.heartbeats"]) == ""
    for sign in ("B.heartbeats", "mm2-moldau-positions.B.internal"):
        assert sign in IDENTITY.loop(["orders", sign])
        assert DEFAULT.loop(["orders", sign]) == ""
    assert IDENTITY.is_cycle("B.heartbeats")


@pytest.mark.parametrize(
    ("topic", "is_selected"),
    [
        ("orders", True),
        ("heartbeats", True),
        ("C.heartbeats", True),
        ("__consumer_offsets", False),
        (".hidden", False),
        ("mm2-offset-syncs.B.internal", False),
        ("mm2-moldau-positions.C.internal", False),
        ("B.checkpoints.internal", False),
        ("orders.replica", False),
    ],
)
def test_topics_of_brokers_and_mirrors_stay_where_they_are(topic: str, is_selected: bool) -> None:
    assert DEFAULT.selects(topic, ANY) is is_selected


def test_heartbeats_are_mirrored_whatever_is_asked_for() -> None:
    wanted = re.compile("orders")
    assert [one for one in ("orders", "payments", "heartbeats") if DEFAULT.selects(one, wanted)] == [
        "orders", "heartbeats",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "separator"), [("a b", "B", "."), ("A", "", "."), ("A", "A", "."), ("A", "B", "/")]
)
def test_an_alias_that_cannot_be_in_a_name_is_refused(source: str, target: str, separator: str) -> None:
    with pytest.raises(ValueError, match="--"):
        ReplicationPolicy(source, target, separator)
