"""What Kafka's tools write into the store is carried out by the controller, and taken away."""

import asyncio
import contextlib
import json
import logging
import random

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.controlling.wishes import WATCHED, read_wishes
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image
from moldau.cluster.state.quotas import QuotaOwner
from moldau.cluster.state.reading import read_image
from moldau.errors import KafkaError, StorageError
from moldau.metadata_store.store import (
    Create,
    Delete,
    NodeExists,
    NodeOperation,
    OutcomeUnknown,
    SessionOver,
    Set,
    children_of,
    node_at,
)
from moldau.simulation.zookeeper import Manners, ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.controlling.tools import created, gone, topic, two
from tests.cluster.several import TIMEOUT_S, Members, followed_by, play


def test_a_topic_that_a_tool_has_written_is_created_with_its_replicas_and_settings() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        settings = {"retention.ms": "5", "message.format.version": "2.8-IV1"}
        await tool.multi(topic("t", [2], [1], config=settings))
        image = await members.shown(lambda image: "t" in image.topics)
        found = image.topics["t"]
        assert [(part.leader, part.replicas, part.isr) for part in found.partitions] == [
            (2, (2,), (2,)),
            (1, (1,), (1,)),
        ]
        assert found.overrides == settings
        assert found.id.int
        assert controller.acting.metadata.topic_config("t").retention_ms == 5
        node = await tool.read(node_at("/brokers/topics/t/partitions/1/state"))
        assert node is not None
        assert json.loads(node.data)["leader"] == 1
        await tool.close()

    play(scenario)


def test_a_topic_that_cannot_be_is_removed_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        for name, replicas in (("twice", [1, 1]), ("nowhere", []), ("bad name", [1])):
            await tool.multi(topic(name, replicas))
            await gone(tool, f"/brokers/topics/{name}")
            await gone(tool, f"/config/topics/{name}")
        assert dict(controller.image.topics) == {}
        await tool.close()

    play(scenario)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert ["one broker twice" in said[0], "is assigned to no broker" in said[1], "has only a-z" in said[2]] == [
        True
    ] * 3


async def assigned(tool: ModelSession, name: str) -> dict[str, list[int]]:
    node = await tool.read(node_at(f"/brokers/topics/{name}"))
    assert node is not None
    return dict(json.loads(node.data)["partitions"])


def test_a_topic_is_enlarged_when_a_tool_has_written_more_partitions_into_its_node() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await controller.acting.topics.create([NewTopic("a", 2)])
        before = controller.image.topics["a"]
        _, larger = topic("a", *(part.replicas for part in before.partitions), [2], [1])
        await tool.multi([Set("/brokers/topics/a", larger.data)])  # type: ignore[union-attr]
        image = await members.shown(lambda image: len(image.topics["a"].partitions) == 4)
        assert image.topics["a"].partitions[:2] == before.partitions
        assert [part.leader for part in image.topics["a"].partitions[2:]] == [2, 1]
        assert image.topics["a"].id == before.id
        await tool.close()

    play(scenario)


def test_partitions_on_a_broker_that_is_away_are_led_when_it_is_back() -> None:
    """It was there when the tool looked."""

    async def scenario(members: Members) -> None:
        _, tool = await two(members)
        await tool.multi(topic("t", [3], [1]))
        image = await members.shown(lambda image: "t" in image.topics)
        assert [part.leader for part in image.topics["t"].partitions] == [-1, 1]
        _, larger = topic("t", [3], [1], [3])
        await tool.multi([Set("/brokers/topics/t", larger.data)])  # type: ignore[union-attr]
        await members.shown(lambda image: len(image.topics["t"].partitions) == 3)
        await members.join(3)
        await members.shown(lambda image: [part.leader for part in image.topics["t"].partitions] == [3, 1, 3])
        await tool.close()

    play(scenario)


def test_what_no_topic_can_have_is_made_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await controller.acting.topics.create([NewTopic("a", 2)])
        before, now = controller.image.topics["a"], await assigned(tool, "a")
        for wrong in ({**now, "2": [1, 2]}, {**now, "2": []}, {"0": now["0"]}, {}, {"x": 1}):
            await tool.multi([Set("/brokers/topics/a", json.dumps({"version": 3, "partitions": wrong}).encode())])
            while True:
                node = await tool.read(node_at("/brokers/topics/a"))
                assert node is not None
                if json.loads(node.data)["partitions"] == now:
                    break
                await asyncio.sleep(0.01)
            assert controller.image.topics["a"] == before
        await tool.close()

    play(scenario)
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 5


@pytest.mark.parametrize("left", [3, 4, 5, 6, 7])
def test_a_topic_that_was_left_half_created_is_completed_by_the_next_controller(left: int) -> None:
    """A controller that died has created that many of its nodes: the third is the topic's own."""

    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await controller.acting.topics.create([NewTopic("t", 2, configs=[("retention.ms", "5")])])
        whole = controller.image.topics["t"]
        for member in list(members.values()):
            await member.membership.close()
        steps = layout.topic_created(whole, 1)[left:]
        await tool.multi([Delete(step.path) for step in reversed(steps)])
        members.clear()
        for number in (1, 2):
            await members.join(number)
        image = await members.shown(lambda image: "t" in image.topics and len(image.topics["t"].partitions) == 2)
        assert (image.topics["t"].id, image.topics["t"].overrides) == (whole.id, {"retention.ms": "5"})
        assert await assigned(tool, "t") == {str(n): list(part.replicas) for n, part in enumerate(whole.partitions)}
        await tool.close()

    play(scenario)


def test_a_topic_that_was_left_half_deleted_is_not_taken_for_one_that_a_tool_has_written() -> None:
    """A new controller looks for wishes while it removes what is left."""

    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await controller.acting.topics.create([NewTopic("t", 2)])
        half_deleted = controller.image.topics["t"]
        await tool.multi([layout.deleted(half_deleted.id, "t", {1: (), 2: ()}), Delete("/config/topics/t")])
        image = await tool.read(read_image())
        assert image is not None
        assert image.topics == {}
        assert (await tool.read(read_wishes(image, ()))).topics == []
        await tool.close()

    play(scenario)


def test_topics_that_come_and_go_leave_no_watch() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        for number in range(5):
            await controller.acting.topics.create([NewTopic(f"t{number}")])
            await asyncio.sleep(1)
            await controller.acting.topics.delete([(f"t{number}", None)])
            await asyncio.sleep(1)
        assert not [path for path in controller.session._looks if path.startswith("/brokers/topics/")]
        asking.cancel()
        await tool.close()

    play(scenario)


def test_what_was_wished_while_there_was_no_controller_is_carried_out_by_the_next_one() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await controller.acting.topics.create([NewTopic("old")])
        for member in list(members.values()):
            await member.membership.close()
        await tool.multi([*topic("new", [2]), Create("/admin/delete_topics/old")])
        members.clear()
        for number in (1, 2):
            await members.join(number)
        image = await members.shown(lambda image: list(image.topics) == ["new"] and len(image.brokers) == 2)
        assert image.topics["new"].partitions[0].replicas == (2,)
        await gone(tool, "/admin/delete_topics/old")
        await tool.close()

    play(scenario)


def test_topics_are_deleted_and_names_of_none_are_taken_away() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await controller.acting.topics.create([NewTopic("a"), NewTopic("b")])
        await tool.multi([Create("/admin/delete_topics/a"), Create("/admin/delete_topics/none")])
        await members.shown(lambda image: list(image.topics) == ["b"])
        await gone(tool, "/admin/delete_topics/a")
        await gone(tool, "/admin/delete_topics/none")
        await tool.close()

    play(scenario)


@pytest.mark.parametrize("version", [1, 2])
def test_changed_settings_are_taken_over(version: int) -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await controller.acting.topics.create([NewTopic("a")])

        def notification(kind: str, name: str, number: int) -> Create:
            path = f"/config/changes/config_change_{number:010}"
            if version == 1:
                return created(path, version=1, entity_type=kind, entity_name=name)
            return created(path, version=2, entity_path=f"{kind}/{name}")

        await tool.multi(
            [
                layout.config("/config/topics/a", {"segment.bytes": "2000000"}, is_new=False),
                notification("topics", "a", 1),
                layout.config("/config/brokers/1", {"log.cleaner.threads": "2"}, is_new=True),
                notification("brokers", "1", 2),
                notification("elephants", "u", 3),
                *(Create(path) for path in ("/config/users/u", "/config/users/u/clients")),
                layout.config("/config/users/u/clients/<default>", {"producer_byte_rate": "5"}, is_new=True),
                notification("users", "u/clients/<default>", 4),
                layout.config("/config/ips/10.0.0.1", {"connection_creation_rate": "6"}, is_new=True),
                notification("ips", "10.0.0.1", 5),
            ]
        )
        await members.shown(lambda image: image.broker_overrides.get("1") == {"log.cleaner.threads": "2"})
        assert controller.image.topics["a"].overrides == {"segment.bytes": "2000000"}
        await members.shown(lambda image: len(image.quotas) == 2)
        assert controller.image.quotas == {
            QuotaOwner("u", ""): {"producer_byte_rate": 5.0},
            QuotaOwner(ip="10.0.0.1"): {"connection_creation_rate": 6.0},
        }
        while await tool.read(children_of("/config/changes")):
            await asyncio.sleep(0.01)
        await tool.close()

    play(scenario)


def test_what_cannot_be_done_is_said_and_taken_away(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await tool.multi(topic("t", [1]))
        await members.shown(lambda image: "t" in image.topics)
        for path, document in (
            ("/admin/reassign_partitions", {"partitions": [{"topic": "t", "partition": 0, "replicas": [9]}]}),
            ("/admin/reassign_partitions", {"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}),
            ("/admin/preferred_replica_election", {"partitions": [{"topic": "t", "partition": 0}]}),
            ("/admin/preferred_replica_election", {"partitions": [{"topic": "none", "partition": 0}]}),
        ):
            await tool.multi([created(path, version=1, **document)])
            await gone(tool, path)
        assert controller.image.topics["t"].partitions[0].replicas == (1,)
        await tool.close()

    play(scenario)
    moved, elected = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert "for t-0 is not done: broker 9 is not running" in moved
    assert "for none-0 is not done: partition 0 of 'none' does not exist" in elected


WRONG = [
    b"",
    b"x",
    b"[]",
    b"7",
    b"{}",
    b'{"partitions": 7}',
    b'{"partitions": {"0": "x"}}',
    b'{"partitions": {"1": [1]}}',
]
WRONG += [
    b'{"partitions": [{"topic": 7, "partition": 0, "replicas": []}]}',
    b"[" * 100_000,
    b'{"entity_path": "topics/.."}',
]
WRONG += [b'{"entity_path": "topics/a/b"}', b'{"entity_path": "topics/"}', b'{"entity_path": 7}']


@pytest.mark.parametrize("path", ["/brokers/topics/w", "/config/changes/w", *WATCHED[3:]])
def test_what_does_not_belong_there_is_removed(path: str) -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        for wrong in WRONG:
            if path.startswith("/admin") and b'"partitions": {' in wrong:
                continue
            await tool.multi([Create(path, wrong)])
            await gone(tool, path)
        await tool.multi(topic("t", [1]))
        await members.shown(lambda image: "t" in image.topics)
        assert controller.image.controller_epoch == 1
        await tool.close()

    play(scenario)


LAG_S = 0.05


@pytest.mark.parametrize("seed", range(12))
def test_every_wish_is_carried_out_whatever_happens_to_the_controllers(seed: int) -> None:
    """Topics are written, enlarged and marked for deletion while controllers die and come back, ZooKeeper loses
    connections and answers, and our own administrators change topics too."""

    async def scenario(members: Members) -> None:
        chance = random.Random(seed)
        members.store = ModelZooKeeper(chance, Manners(3, answer_s=0.02, lag_s=LAG_S, drop=0.01, away_s=0.5))
        for number in (1, 2, 3):
            await members.join(number)
        wanted: dict[str, int] = {}

        for number in range(15):
            kind = chance.choice(("create", "create", "enlarge", "delete", "die", "ours"))
            name = f"t{number}"
            if kind == "create":
                wanted[name] = chance.randint(1, 4)
                await _written(members, *topic(name, *([chance.randint(1, 3)] for _ in range(wanted[name]))))
            elif kind == "enlarge" and wanted:
                name = chance.choice(sorted(wanted))
                await _settled(members, wanted)
                await asyncio.sleep(LAG_S)
                now = await assigned(ModelSession(members.store, TIMEOUT_S), name)
                wanted[name] = len(now) + 2
                _, node = topic(name, *now.values(), [1], [3])
                assert isinstance(node, Create)
                await _written(members, Set(node.path, node.data))
            elif kind == "delete" and wanted:
                name = chance.choice(sorted(wanted))
                del wanted[name]
                await _written(members, Create(f"/admin/delete_topics/{name}"))
            elif kind == "die":
                controller = await members.controller()
                controller.die()
                await asyncio.sleep(chance.random() * 10)
                await members.join(controller.broker_id)
            elif kind == "ours":
                with contextlib.suppress(KafkaError, StorageError):
                    await (await members.controller()).acting.topics.create([NewTopic(f"ours{number}")])
        await _settled(members, wanted)
        outside = ModelSession(members.store, TIMEOUT_S)
        for path in ("/admin/delete_topics", "/config/changes"):
            while await outside.read(children_of(path)):
                await asyncio.sleep(0.01)
        for name in wanted:
            while await outside.read(node_at(f"/brokers/topics/{name}/partitions/0/state")) is None:
                await asyncio.sleep(0.01)

    play(scenario)


async def _written(members: Members, *steps: NodeOperation) -> None:
    while True:
        tool = ModelSession(members.store, TIMEOUT_S)
        try:
            await tool.multi(steps)
            return
        except NodeExists:
            return
        except (OutcomeUnknown, SessionOver):  # a tool fails then, and its user looks before the next try
            if await _is_done(members, steps[-1]):
                return
        finally:
            await tool.close()


async def _is_done(members: Members, step: NodeOperation) -> bool:
    """Whether the write is there; one that was carried out already may be written again."""
    session = ModelSession(members.store, TIMEOUT_S)
    node = await session.read(node_at(step.path))
    if isinstance(step, Set):
        return node is not None and len(json.loads(node.data)["partitions"]) >= len(json.loads(step.data)["partitions"])
    return node is not None


async def _settled(members: Members, wanted: dict[str, int]) -> None:
    def is_settled(image: Image) -> bool:
        theirs = {name: len(one.partitions) for name, one in image.topics.items() if not name.startswith("ours")}
        return theirs == wanted

    await members.shown(is_settled)


def test_a_fault_while_wishes_are_carried_out_is_named_and_they_are_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        tools, tried = (await members.controller()).acting._old_tools, list[int]()

        async def explode(_: object) -> None:
            tried.append(1)
            raise ZeroDivisionError("a defect")

        monkeypatch.setattr(tools, "_carry_out", explode)
        tools.look()
        await asyncio.sleep(30)
        assert len(tried) > 2
        assert any("internal error: what a tool" in line for line in caplog.messages)

    play(scenario)
