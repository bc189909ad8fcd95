"""What pages show while a part of the cluster is away: a partition without a leader, a broker that hangs or is gone, a
topic that is deleted under the page. The rest is shown, and what is left out is named."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from moldau import Admin, Producer, TopicPartition
from moldau.client.administration.groups import GroupListing
from moldau.client.administration.records import ListedOffset
from moldau.console.asking import group_questions, keeping, sharing_admin
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.asking.health_question import ClusterHealth
from moldau.errors import ErrorCode, KafkaError
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser

GONE = 77
"""A broker that no cluster of these tests has."""
TOPIC = "half"
OFFSETS = {TopicPartition(TOPIC, number): 1 for number in (0, 1)}


@pytest.fixture(scope="module", autouse=True)
def half(broker: Broker) -> None:
    """A topic of two partitions with three records each, of which a group has read one."""
    broker.create_topic(TOPIC, 2)
    with Producer(broker.address) as producer:
        for number in range(6):
            producer.send(TOPIC, b"x" * 50, partition=number % 2)
    with Admin(broker.address) as admin:
        admin.alter_group_offsets("readers", OFFSETS)


@pytest.fixture
def without_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partition 0 has no leader: nobody tells its offsets."""
    ask = ClusterAdmin.list_offsets

    async def list_offsets(
        admin: ClusterAdmin, wanted: Mapping[TopicPartition, Any], *, known_only: bool = False, **named: Any
    ) -> dict[TopicPartition, ListedOffset | None]:
        if not known_only and any(tp.partition == 0 for tp in wanted):
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "partition 0 has no leader")
        led = {tp: position for tp, position in wanted.items() if tp.partition}
        return await ask(admin, led, known_only=known_only, **named)

    monkeypatch.setattr(ClusterAdmin, "list_offsets", list_offsets)


@pytest.mark.usefixtures("without_leader")
def test_a_group_is_shown_although_one_of_its_partitions_has_no_leader(browser: ScreenlessBrowser) -> None:
    page = browser.get("/groups/readers", HX_Request="true")
    assert page.status == 200 and re.findall(r"half (\d) ([\d,]+) (\S+) (\S+)", page.text) == [
        ("0", "1", "–", "–"), ("1", "1", "3", "2"),
    ], page.text  # fmt: skip
    assert " readers Empty classic 0 half 2 " in browser.get("/group-rows?q=readers", HX_Request="true").text


@pytest.mark.usefixtures("without_leader")
def test_a_plot_has_a_gap_and_no_step_where_a_partition_is_not_known(browser: ScreenlessBrowser) -> None:
    pulse = json.loads(browser.get(f"/topics/{TOPIC}/pulse").html)
    assert pulse["records"] is None and pulse["bytes"] > 0


def test_a_plot_has_a_gap_where_the_size_of_a_replica_is_not_known(
    browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def known_sizes(*_: object) -> dict[TopicPartition, dict[int, int]]:
        return {TopicPartition(TOPIC, 1): {1: 100}}

    monkeypatch.setattr(ClusterAdmin, "known_sizes", known_sizes)
    assert json.loads(browser.get(f"/topics/{TOPIC}/pulse").html) == {"records": 6, "bytes": None}


def test_ages_that_take_too_long_are_left_out(browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(group_questions, "waiting_since", hangs)
    monkeypatch.setattr(group_questions, "WAITING_S", 0.01)
    monkeypatch.setattr(keeping, "LAGS_KEPT_S", -1.0)
    page = browser.get("/groups/readers", HX_Request="true")
    assert page.text.count(" 1 3 2 –") == 2, page.text


def test_a_broker_that_does_not_answer_is_named_and_the_groups_of_the_others_are_shown(
    browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, sizes = ClusterAdmin._brokers, ClusterAdmin._log_dirs

    async def one_more(admin: ClusterAdmin) -> list[int]:
        return [*await brokers(admin), GONE]

    async def log_dirs(admin: ClusterAdmin, broker_id: int, *given: Any) -> Any:
        assert broker_id != GONE
        return await sizes(admin, broker_id, *given)

    named = f"Broker {GONE} did not answer in time: what only it knows is left out."
    with monkeypatch.context() as patched:
        patched.setattr(ClusterAdmin, "_brokers", one_more)
        patched.setattr(ClusterAdmin, "_log_dirs", log_dirs)
        for path, shown in (("/health", "group"), ("/group-rows", "readers"), (f"/topics/{TOPIC}/groups", "readers")):
            page = browser.get(path, HX_Request="true")
            assert page.status == 200 and named in page.text and shown in page.text, page.text
    assert named not in browser.get("/group-rows", HX_Request="true").text
    assert f"Broker {GONE}" not in browser.get("/topic-rows", HX_Request="true").text


class TwoBrokers(ClusterAdmin):
    """An admin client of two brokers; `answers` says what the second one does when it is asked for its groups."""

    def __init__(self) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1"})
        self.answers: KafkaError | None = None
        self.hangs = True
        self.waits = 0

    async def _brokers(self) -> list[int]:
        return [1, 2]

    async def list_groups(self, *, broker_ids: Any = None, **_: Any) -> list[GroupListing]:
        (broker_id,) = broker_ids
        if broker_id == 2:
            self.waits += 1
            if self.hangs:
                await asyncio.Event().wait()
            if self.answers is not None:
                raise self.answers
        return [GroupListing(f"of-{broker_id}", "consumer", "Empty", "classic")]


def test_a_broker_that_hangs_is_asked_again_and_its_groups_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_admin, "ANSWER_S", 0.02)
    monkeypatch.setattr(sharing_admin, "AGAIN_S", 0.01)
    monkeypatch.setattr(keeping, "KEPT_TIMES", 1_000_000)

    async def names(admin: TwoBrokers) -> list[str]:
        return [one.group_id for one in await admin.groups()]

    async def scenario() -> None:
        admin = TwoBrokers()
        assert await names(admin) == ["of-1"] and admin.silent == {2}
        assert await names(admin) == ["of-1"] and admin.waits == 2, "an answer that lacks something is not kept"
        admin.hangs, admin.answers = False, KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "it has left")
        assert await names(admin) == ["of-1"] and admin.silent == {2}
        admin.answers = None
        assert await names(admin) == ["of-1", "of-2"] and not admin.silent
        admin.forget("groups")
        admin.answers = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "denied")
        with pytest.raises(KafkaError, match="denied"):
            await names(admin)
        await admin.close()

    asyncio.run(scenario())


def test_without_any_broker_that_answers_there_is_a_sentence_and_no_empty_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TwoBrokers, "list_groups", lambda *_, **__: asyncio.Event().wait())
    monkeypatch.setattr(sharing_admin, "ANSWER_S", 0.01)

    async def scenario() -> None:
        admin = TwoBrokers()
        with pytest.raises(KafkaError, match="no broker told its groups"):
            await admin.groups()
        await admin.close()

    asyncio.run(scenario())


def test_groups_without_a_coordinator_are_left_out_of_the_offsets_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    class Coordinators(TwoBrokers):
        async def _takes_several(self) -> bool:
            return True

        async def _ask(self, api: Any, *_: Any) -> Any:
            assert api is group_questions.FIND_COORDINATOR
            coordinator = api.messages.Coordinator
            return api.messages.FindCoordinatorResponse(
                coordinators=[
                    coordinator(key="a", node_id=1, host="h", port=1),
                    coordinator(key="b", node_id=-1, error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE)),
                ]
            )

        async def _committed(self, broker_id: int, group_ids: list[str]) -> dict[str, dict[TopicPartition, int]]:
            return {group_id: {TopicPartition("t", 0): broker_id} for group_id in group_ids}

    async def scenario() -> None:
        admin = Coordinators()
        assert await admin.committed(["a", "b"]) == {"a": {TopicPartition("t", 0): 1}}
        await admin.close()

    asyncio.run(scenario())


def test_brokers_that_have_replicas_and_are_not_up_are_named(
    browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own,) = map(int, set(re.findall(r'href="/brokers/(\d+)"', browser.get("/brokers").html)))

    async def health(*_: object) -> ClusterHealth:
        return ClusterHealth(1, 1, 0, 1, frozenset([own, GONE]))

    assert "is not up" not in browser.get("/health", HX_Request="true").text + browser.get("/brokers").text
    monkeypatch.setattr(ClusterAdmin, "_health", health)
    for path in ("/health", "/brokers"):
        assert f"{GONE} It has replicas, and is not up. away" in browser.get(path, HX_Request="true").text, path
    assert "1 broker up, 1 away" in browser.get("/health", HX_Request="true").text


def test_counts_of_a_cluster_that_is_not_well_are_soon_counted_again() -> None:
    async def scenario() -> None:
        times_s = iter([0.0, 10.0])
        task = asyncio.ensure_future(asyncio.sleep(0))
        answer = keeping.SharedAnswer(task, lambda: next(times_s))
        await task
        await asyncio.sleep(0)
        now_s = 10.5 + keeping.UNHEALTHY_MAX_S
        assert answer.is_over(now_s, 5.0, keeping.UNHEALTHY_TIMES, keeping.UNHEALTHY_MAX_S)
        assert not answer.is_over(now_s, 5.0, keeping.UNHEALTHY_TIMES)

    asyncio.run(scenario())


def test_a_mirror_that_was_deleted_is_not_shown_as_one(
    browser: ScreenlessBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mirrors(*_: object) -> dict[str, str]:
        """As a minute ago."""
        return {TOPIC: "far", "was-deleted": "far"}

    monkeypatch.setattr(ClusterAdmin, "mirrors", mirrors)
    page = browser.get("/mirrors")
    assert page.status == 200 and TOPIC in page.text and "was-deleted" not in page.text


@pytest.mark.parametrize("sort", ["name", "-lag"])
def test_a_topic_that_is_deleted_between_two_questions_ends_no_list(
    browser: ScreenlessBrowser, broker: Broker, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    broker.create_topic("doomed", 1)
    ask, doomed = ClusterAdmin.starts, ["doomed"]

    async def starts(admin: ClusterAdmin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        while doomed:
            await admin.delete_topic(doomed.pop())
        return await ask(admin, partitions)

    monkeypatch.setattr(ClusterAdmin, "starts", starts)
    rows = browser.get(f"/topic-rows?sort={sort}", HX_Request="true")
    assert rows.status == 200 and "doomed 1 1 – – 0 –" in rows.text and f"{TOPIC} 2 1 6" in rows.text, rows.text


def test_pages_of_a_topic_that_is_deleted_under_them_are_sentences(browser: ScreenlessBrowser, broker: Broker) -> None:
    broker.create_topic("short-lived", 1)
    with Admin(broker.address) as admin:
        admin.alter_group_offsets("mourns", {TopicPartition("short-lived", 0): 0})
        browser.get("/topics")
        admin.delete_topic("short-lived")
    for part in ("", "/messages", "/groups", "/settings", "/pulse", "/search", "/tail", "/export", "/records/0/0"):
        page = browser.get(f"/topics/short-lived{part}", HX_Request="true")
        assert page.status == 404 and "unknown topic" in page.text, (part, page.text)
    browser.get("/new-topic")
    for part, form in (("delete", {"confirm": "short-lived"}), ("produce", {"value_as": "text"})):
        assert browser.post(f"/topics/short-lived/{part}", form).status == 404
    group = browser.get("/groups/mourns", HX_Request="true")
    assert group.status in (200, 404), "the broker deletes its offsets, and may not have done so yet"
    assert browser.get("/group-rows?q=mourns", HX_Request="true").status == 200
