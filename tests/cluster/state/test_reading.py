"""Images read from a store that changes meanwhile: reading takes several questions."""

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import given_way, read_image
from moldau.metadata_store.store import Node, Question, Reading
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import TIMEOUT_S, Members, play


def only(question: Question) -> Reading[object]:
    return (yield question)


@pytest.mark.parametrize("before", range(20))
def test_a_topic_that_is_deleted_while_an_image_is_read_is_in_it_or_one_of_the_deleted_ones(before: int) -> None:
    """A broker that starts removes the logs of deleted topics; those of topics that it does not know it leaves alone,
    for ever."""

    async def scenario(members: Members) -> None:
        member = await members.join(1)
        controller = await members.controller()
        [(_, topic)] = await controller.acting.topics.create([NewTopic("t", 2)])
        session = ModelSession(members.store, TIMEOUT_S)
        reading, answer, asked, image = read_image(), None, 0, None
        while image is None:
            try:
                question = reading.send(answer)
            except StopIteration as end:
                image = end.value
                break
            if asked == before:
                await member.acting.topics.delete([("t", None)])
            answer, asked = await session.read(only(question)), asked + 1
        assert isinstance(image, Image)
        assert list(image.topics.values()) == [topic] or list(image.deleted) == [topic.id]
        await session.close()

    play(scenario)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"controller_epoch": 7, "brokers": [3, 1]}', layout.GivenWay(7, (3, 1))),
        (b"", None),
        (b"[]", None),
        (b'{"controller_epoch": "7", "brokers": [3]}', None),
        (b'{"controller_epoch": 7, "brokers": 3}', None),
    ],
)
def test_who_gave_way_is_nobody_if_the_node_has_something_else(data: bytes, expected: layout.GivenWay | None) -> None:
    assert given_way(Node(data, 0)) == expected
    assert given_way(None) is None
