"""Brokers follow their controller over the simulated network: images in order, also over changes of controller."""

import asyncio
import errno
import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest

from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.controlling.assigned_directories import InDirectory
from moldau.cluster.controlling.change_stream import ChangeStream
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.directory_messages import outcomes, to_request
from moldau.cluster.following import Following
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import broker_config
from moldau.errors import ErrorCode, KafkaError
from moldau.names import short_id
from moldau.peers.address import Address
from moldau.peers.introduction import Identity, link_to_broker
from moldau.protocol.apis import ASSIGN_REPLICAS_TO_DIRS, FOLLOW_CLUSTER, METADATA
from moldau.protocol.messages.follow_cluster import FollowClusterRequest
from moldau.runtime import Runtime
from tests.cluster.connected import PORT, Brokers, played
from tests.cluster.several import SETTINGS


def test_all_brokers_have_a_topic_when_its_creation_is_answered() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        await brokers.controller.acting.topics.create([NewTopic("t", 5, 1)])
        images = [broker.metadata.image for broker in brokers.values()]
        assert all(len(image.topics["t"].partitions) == 5 for image in images)
        assert images[0] == images[1] == images[2]
        assert images[0].controller_id == brokers.controller.broker_id

    played(scenario)


def test_images_are_those_of_the_controller_in_their_order_and_share_what_did_not_change() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        follower = brokers.others[0]
        await brokers.controller.acting.topics.create([NewTopic("first", 3, 1)])
        first = follower.metadata.image.topics["first"]
        decided: list[Image] = []
        shown: list[tuple[Image, list[str]]] = []

        def decide(image: Image, names: Sequence[str]) -> None:
            decided.append(image)

        def show(image: Image, names: Sequence[str]) -> None:
            shown.append((image, list(names)))

        brokers.controller.acting.metadata.subscribe(decide)
        follower.metadata.subscribe(show)
        for number in range(10):
            await brokers.controller.acting.topics.create([NewTopic(f"t{number}", 1, 1)])
        shown_topics = [list(image.topics) for image, _ in shown]
        assert shown_topics == [topics for image in decided if (topics := list(image.topics)) in shown_topics]
        assert [name for _, names in shown for name in names] == [f"t{number}" for number in range(10)]
        assert all(image.topics["first"] is first for image, _ in shown)

    played(scenario)


class Newcomer:
    """Broker 1, which has just started and reads a controller's stream. Its latest registration is `epochs[-1]`, as far
    as it knows; the image still shows an earlier one, and that it leads the first of two partitions."""

    def __init__(self) -> None:
        ours, others = PartitionImage(1, 4, (1, 2), (1, 2)), PartitionImage(2, 4, (1, 2), (1, 2))
        self.topic = TopicImage("t", uuid.UUID(int=1), (ours, others), {})
        self.epochs = [20]
        self.stream = ChangeStream(1, self.registered(10))
        self.metadata = MetadataCache(broker_config({**SETTINGS, "node.id": "1"})[0], Image("c"))
        self.shown: list[tuple[Image, list[str]]] = []
        self.metadata.subscribe(lambda image, names: self.shown.append((image, list(names))))
        link = ControllerLink(ControllerLocator(), Identity("c", 1, lambda: self.epochs[-1], lambda: b""), Runtime())
        self.following = Following(self.metadata, link, lambda: self.stream, Runtime())

    def registered(self, epoch: int) -> Image:
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "here", PORT)
        return Image("c", 1, {1: BrokerImage(1, (endpoint,), epoch=epoch)}).with_topics({"t": self.topic})

    @property
    def leaders(self) -> list[int]:
        return [part.leader for part in self.metadata.image.topics["t"].partitions]

    async def shows(self, epoch: int) -> None:
        await self.following.until(lambda image: 1 in image.brokers and image.brokers[1].epoch == epoch)


def test_a_broker_leads_nothing_before_an_image_shows_its_registration() -> None:
    async def scenario(_: Brokers) -> None:
        new = Newcomer()
        new.following.start()
        try:
            await new.shows(10)
            assert new.leaders == [NO_LEADER, 2]
            new.stream.publish(new.registered(20))
            await new.shows(20)
            assert new.shown[-1] == (new.registered(20), ["t"])
            new.epochs.append(21)  # it has registered again, in the same process: its logs are whole
            new.stream.publish(replace(new.registered(20), broker_overrides={"": {"log.retention.ms": "1"}}))
            await new.following.until(lambda image: bool(image.broker_overrides))
            assert new.leaders == [1, 2]
        finally:
            await new.following.stop()

    played(scenario)


def test_a_registration_that_is_shown_before_the_broker_knows_of_it_counts_when_it_does() -> None:
    async def scenario(_: Brokers) -> None:
        new = Newcomer()
        new.following.start()
        try:
            await new.shows(10)
            await asyncio.sleep(0.1)  # the next question waits at the controller
            new.stream.publish(new.registered(21))
            await asyncio.sleep(1)
            assert new.leaders == [NO_LEADER, 2]
            new.epochs.append(21)
            await new.shows(21)
            assert new.leaders == [1, 2]
        finally:
            await new.following.stop()

    played(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_another_controller_takes_over_and_brokers_follow_it(seed: int) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        old = brokers.controller
        await old.acting.topics.create([NewTopic("before", 2, 1)])
        old.kill()
        del brokers[old.broker_id]
        await brokers.until(lambda image: old.broker_id not in image.brokers and image.controller_epoch == 2)
        kept = {one.broker_id: one.metadata.image.topics["before"] for one in brokers.values()}
        await brokers.controller.acting.topics.create([NewTopic("after", 2, 1)])
        for broker in brokers.values():
            assert "after" in broker.metadata.image.topics
            assert broker.metadata.image.topics["before"] is kept[broker.broker_id]

    played(scenario, seed)


def test_a_broker_that_is_cut_off_catches_up_when_it_is_back() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        controller, far = brokers.controller, brokers.others[0]
        brokers.world.network.partition(controller.host, far.host)
        began_s = asyncio.get_running_loop().time()
        await controller.acting.topics.create([NewTopic("meanwhile", 1, 1)])
        assert asyncio.get_running_loop().time() - began_s < 1.5, "it is waited for no longer than a second"
        assert "meanwhile" not in far.metadata.image.topics
        await asyncio.sleep(5)
        brokers.world.network.heal()
        await brokers.until(lambda image: "meanwhile" in image.topics)

    played(scenario)


def test_the_store_may_be_away_while_brokers_follow() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        controller, follower = brokers.controller, brokers.others[0]
        follower.session.abandon()
        await controller.acting.topics.create([NewTopic("t", 1, 1)])
        assert "t" in follower.metadata.image.topics

    played(scenario)


def test_questions_go_on_while_a_change_takes_long_to_show() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        controller, follower = brokers.controller, brokers.others[0]

        async def slow(image: Image, names: Sequence[str]) -> None:
            if "slow" in names:
                await asyncio.sleep(40)

        follower.metadata.subscribe(slow)
        await controller.acting.topics.create([NewTopic("slow", 1, 1)])
        stream = controller.acting.stream
        assert stream is not None
        for _ in range(10):
            await asyncio.sleep(3.5)
            assert stream.silent(3) == []
        assert not await stream.known_to([follower.broker_id], stream.position)
        await asyncio.sleep(6)
        assert await stream.known_to([follower.broker_id], stream.position, 0.5)

    played(scenario)


def test_a_change_that_cannot_be_shown_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        follower, failures, seen = brokers.others[0], [OSError("full"), OSError("full")], []

        def fail(image: Image, names: Sequence[str]) -> None:
            if failures and "t" in names:
                raise failures.pop()
            seen.extend(names)

        follower.metadata.subscribe(fail)
        await brokers.controller.acting.topics.create([NewTopic("t", 1, 1)])
        assert seen == []
        await follower.following.until(lambda image: seen == ["t"])

    with caplog.at_level(logging.CRITICAL, "moldau.cluster.following"):
        played(scenario)


def test_a_change_waits_for_a_file_descriptor_and_one_sentence_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        follower, seen = brokers.others[0], []
        failures = [OSError(errno.EMFILE, "Too many open files", "ports.py") for _ in range(3)]

        def fail(image: Image, names: Sequence[str]) -> None:
            if failures and "t" in names:
                raise failures.pop()
            seen.extend(names)

        follower.metadata.subscribe(fail)
        await brokers.controller.acting.topics.create([NewTopic("t", 1, 1)])
        await follower.following.until(lambda image: seen == ["t"])

    played(scenario)
    (line,) = [one for one in caplog.records if "changes of the cluster" in one.getMessage()]
    assert "until this process can open files: Too many open files. Raise the limit" in line.getMessage()
    assert line.exc_info is None


def test_an_answer_of_a_controller_that_was_replaced_is_dropped() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        follower, controller = brokers.others[0], brokers.controller
        follower.following._epoch = 9
        stream = controller.acting.stream
        assert stream is not None
        stream.publish(replace(stream.image, group_overrides={"g": {"a": "b"}}))
        await asyncio.sleep(10)
        assert not follower.metadata.image.group_overrides

    played(scenario)


def test_a_client_that_asks_as_brokers_do_is_cut_off() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1)
        link = await brokers.link(brokers[1])
        with pytest.raises(KafkaError):
            link.versions.of(FOLLOW_CLUSTER)
        assert link.versions.of(METADATA)
        link.versions.add({FOLLOW_CLUSTER.key: (0, 0)})
        with pytest.raises(KafkaError):
            await link.call(FOLLOW_CLUSTER, FollowClusterRequest(broker_id=1))
        assert link.closed

    played(scenario)


def test_a_broker_reports_its_log_folders_to_the_controller_and_to_nobody_else() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        controller, [other] = brokers.controller, brokers.others
        [(_, topic)] = await controller.acting.topics.create([NewTopic("t", 2)])
        assert isinstance(topic, TopicImage)
        found = [InDirectory(topic.id, number, short_id(uuid.UUID(int=9))) for number in (0, 1, 2)]
        link = await link_to_broker(Address(other.host, PORT), other.broker_id, controller.identity, 5000)
        answer = await link.call(ASSIGN_REPLICAS_TO_DIRS, to_request(controller.broker_id, 1, found))
        assert answer.error_code == ErrorCode.NOT_CONTROLLER
        link = await link_to_broker(Address(controller.host, PORT), controller.broker_id, other.identity, 5000)
        for broker_id, refusal in ((7, ErrorCode.INVALID_REQUEST), (other.broker_id, ErrorCode.STALE_BROKER_EPOCH)):
            answer = await link.call(ASSIGN_REPLICAS_TO_DIRS, to_request(broker_id, 0, found))
            assert (answer.error_code, answer.directories) == (refusal, [])
        answer = await link.call(ASSIGN_REPLICAS_TO_DIRS, to_request(other.broker_id, other.membership.epoch, found))
        [theirs] = [number for number, part in enumerate(topic.partitions) if part.leader == other.broker_id]
        refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
        expected_codes = [0 if number == theirs else refused for number in (0, 1)]
        assert outcomes(answer, found) == [*expected_codes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await brokers.until(lambda image: image.topics["t"].partitions[theirs].directories == (found[0].directory,))

    played(scenario)


def test_a_broker_whose_session_is_over_hears_what_changes_and_is_silent_all_the_same() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        stream = brokers.controller.acting.stream
        assert stream is not None and brokers.controller is brokers[1]
        await brokers[2].following.stop()
        unregistered = brokers[2].identity._replace(epoch=lambda: -1)
        link = await link_to_broker(Address("host1", PORT), 1, unregistered, 5000)
        for _ in range(8):
            own = FollowClusterRequest(broker_id=2, broker_epoch=-1)
            assert (await link.call(FOLLOW_CLUSTER, own)).whole is not None
            await asyncio.sleep(0.5)
        assert stream.silent(3) == [2]

    played(scenario)


def test_a_broker_may_not_follow_in_the_name_of_another() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        link = await link_to_broker(Address("host1", PORT), 1, brokers[2].identity, 5000)
        answer = await link.call(FOLLOW_CLUSTER, FollowClusterRequest(broker_id=1))
        assert answer.error_code
        own = FollowClusterRequest(broker_id=2, broker_epoch=brokers[2].identity.epoch())
        assert (await link.call(FOLLOW_CLUSTER, own)).whole is not None

    played(scenario)


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_broker_hands_over_what_it_leads_before_it_leaves(is_controller: bool) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        topics = [NewTopic(name, 1, 3, configs=[("min.insync.replicas", "2")]) for name in "abc"]
        await brokers.controller.acting.topics.create(topics)
        leaving = brokers.controller if is_controller else brokers.others[0]
        began_s = asyncio.get_running_loop().time()
        assert await leaving.following.leave(15)
        assert asyncio.get_running_loop().time() - began_s < 1, "no question waited for its end"
        for broker in brokers.values():
            parts = [topic.partitions[0] for topic in broker.metadata.image.topics.values()]
            assert all(part.leader != leaving.broker_id and leaving.broker_id not in part.isr for part in parts)
            assert all(len(part.isr) == 2 for part in parts)

    played(scenario)


def test_a_broker_waits_for_leave_no_longer_than_it_may() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        brokers.controller.kill()
        del brokers[1]
        brokers[2].acting._is_leaving = True  # there is no controller
        began_s = asyncio.get_running_loop().time()
        assert not await brokers[2].following.leave(15)
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(15)

    played(scenario)
