"""Sessions that expire while changes are made, again and again: each member goes on in a new one, and no answer that
was given is lost."""

import asyncio
import contextlib
import random

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state import layout
from moldau.cluster.state.image import TopicImage
from moldau.cluster.state.reading import read_image
from moldau.errors import KafkaError, StorageError
from moldau.metadata_store.store import StoreConflict
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import TIMEOUT_S, Members, play

TOPICS, PARTITIONS = 20, 260
"""Partitions enough for two steps, so that a session may be over between them."""


@pytest.mark.parametrize("seed", range(3))
def test_what_was_answered_holds_and_everybody_is_back(seed: int) -> None:
    chance = random.Random(seed)

    async def scenario(members: Members) -> None:
        for number in (1, 2, 3):
            await members.join(number)
        answered: set[str] = set()
        removed: set[str] = set()
        expired = 0

        async def change() -> None:
            for number in range(TOPICS):
                name, count = f"t{number}", chance.choice([1, 1, PARTITIONS])
                while name not in answered:
                    with contextlib.suppress(KafkaError, StorageError, StoreConflict):
                        topics = (await members.controller()).acting.topics
                        [(_, topic)] = await topics.create([NewTopic(name, count)])
                        if isinstance(topic, TopicImage) or name in (await members.controller()).image.topics:
                            answered.add(name)
                    await asyncio.sleep(chance.uniform(0, 1))
                if chance.random() < 0.3:
                    answered.discard(name)  # without an answer nobody knows
                    with contextlib.suppress(KafkaError, StorageError, StoreConflict):
                        [(_, _, gone)] = await (await members.controller()).acting.topics.delete([(name, None)])
                        if isinstance(gone, TopicImage):
                            removed.add(name)

        changing = asyncio.ensure_future(change())
        while not changing.done() or expired < 3:
            link = chance.choice(list(members.values())).session.link
            members.store.cut(link)
            await asyncio.sleep(chance.choice([0.5, 2 * TIMEOUT_S]))
            expired += link.is_over
            members.store.mend(link)
            await asyncio.sleep(chance.uniform(0, 3))
        await changing
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        image = await members.shown(lambda image: answered <= image.topics.keys())
        assert not removed & image.topics.keys()
        outside = ModelSession(members.store)
        stored = await outside.read(read_image())
        await outside.close()
        assert stored is not None
        assert stored.topics == image.topics
        for topic in image.topics.values():
            assert layout.state_path(topic.name, len(topic.partitions) - 1) in members.store.nodes
        assert {len(topic.partitions) for topic in image.topics.values()} <= {1, PARTITIONS}

    play(scenario)
