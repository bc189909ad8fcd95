"""Lists in the order that the user asks for: of the whole list, and not of the part that is shown."""

import re

import pytest

from moldau import Admin, Producer, TopicPartition
from moldau.client.cluster_view import TopicView
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.pages import groups, topics
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser, Seen

RECORDS = {"a-small": 1, "b-large": 9, "c-middle": 4, "d-empty": 0}
COMMITTED = {"g-ahead": 9, "g-behind": 2, "g-between": 5, "g-elsewhere": None}


@pytest.fixture(scope="module", autouse=True)
def filled(broker: Broker) -> None:
    with Producer(broker.address) as producer:
        for topic, count in RECORDS.items():
            broker.create_topic(topic, 1 + (topic == "c-middle"))
            for _ in range(count):
                producer.send(topic, b"x" * 100, partition=0).result()
    with Admin(broker.address) as admin:
        for group_id, offset in COMMITTED.items():
            tp = TopicPartition("b-large", 0) if offset is not None else TopicPartition("gone", 0)
            if offset is None:
                broker.create_topic("gone", 1)
            admin.alter_group_offsets(group_id, {tp: offset or 0})
        admin.alter_group_offsets("wide", {TopicPartition("c-middle", 1): 0, TopicPartition("c-middle", 0): 1})
        admin.delete_topic("gone")


def names(seen: Seen, path: str) -> list[str]:
    assert seen.status == 200, seen.text
    return re.findall(rf'<td class="name"><a href="/{path}/([^"]*)"', seen.html)


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("", ["a-small", "b-large"]),
        ("-name", ["d-empty", "c-middle"]),
        ("-records", ["b-large", "c-middle"]),
        ("size", ["d-empty", "a-small"]),
        ("-lag", ["b-large", "c-middle"]),
        ("-partitions", ["c-middle", "a-small"]),
        ("nothing", ["a-small", "b-large"]),
    ],
)
def test_topics_are_sorted_before_a_part_of_them_is_shown(
    browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch, sort: str, expected: list[str]
) -> None:
    monkeypatch.setattr(topics, "ROWS", 2)
    assert names(browser.get(f"/topics?sort={sort}"), "topics") == expected
    assert names(browser.get(f"/topic-rows?sort={sort}", HX_Request="true"), "topics") == expected


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-lag", ["g-behind", "g-between"]),
        ("lag", ["g-ahead", "wide"]),
        ("-group", ["wide", "g-elsewhere"]),
        ("state", ["g-ahead", "g-behind"]),
    ],
)
def test_groups_are_sorted_before_a_part_of_them_is_shown(
    browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch, sort: str, expected: list[str]
) -> None:
    monkeypatch.setattr(groups, "ROWS", 2)
    assert names(browser.get(f"/groups?sort={sort}"), "groups") == expected
    seen = browser.get(f"/group-rows?sort={sort}", HX_Request="true")
    assert names(seen, "groups") == expected and f'sort={sort}"' in seen.html.replace("&amp;", "&")


def test_a_click_on_the_head_of_a_column_turns_its_order(browser: ScreenlessBrowser) -> None:
    first = browser.get("/groups?q=g-").html
    assert '<a href="/groups?sort=-lag&amp;q=g-&amp;state=">' in first and 'aria-sort="ascending"' in first
    turned = browser.get("/groups?q=g-&sort=-lag").html
    assert '<a href="/groups?sort=lag&amp;q=g-&amp;state=">' in turned and 'aria-sort="descending"' in turned
    last = names(browser.get("/groups?q=g-&sort=lag"), "groups")[-1]
    assert last == "g-elsewhere", "what is not known comes last in both directions"


def test_the_partitions_of_a_group_are_sorted_by_lag(browser: ScreenlessBrowser) -> None:
    for sort, partitions in (("", ["0", "1"]), ("-lag", ["0", "1"]), ("lag", ["1", "0"])):
        page = browser.get(f"/groups/wide?sort={sort}").html
        assert re.findall(r'c-middle</a></td>\s*<td class="right">(\d)', page) == partitions


def test_topics_that_lack_replicas_or_leaders_are_shown_alone(
    browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ClusterAdmin.every_topic

    async def every_topic(admin: ClusterAdmin) -> dict[str, TopicView]:
        """As with a second replica on a broker that is down."""
        views = await known(admin)
        lacking = {n: one._replace(replicas=(1, 2)) for n, one in views["d-empty"].partitions.items()}
        return {**views, "d-empty": views["d-empty"]._replace(partitions=lacking)}

    assert "No topic lacks a leader or a replica" in browser.get("/topics?ailing=1").text
    monkeypatch.setattr(ClusterAdmin, "every_topic", every_topic)
    assert names(browser.get("/topics?ailing=1"), "topics") == ["d-empty"]
    assert names(browser.get("/topics?ailing=1&sort=-lag"), "topics") == ["d-empty"]
