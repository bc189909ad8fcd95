"""Controllers that were replaced before they knew it, as readable transcripts.

Each line is `event | state; answers`. The state: who takes himself for the controller, in which epoch, and the topics
in the store. The answers: those that have come to what was asked. Events:

    1 creates t               broker 1, as the controller, is asked to create a topic; nobody waits for the answer
    1 hears nothing           no watch of it fires, as in a process that stands still
    1 is removed              an operator deletes the node that says who is the controller
    1 is cut off              it does not reach the store
    1 loses an answer         the store does what it is asked for next; before the answer the connection is lost, and
                              is back at once
    somebody is elected       the next controller is there
    1 is back                 it reaches the store again
"""

import asyncio
from typing import Any

import pytest

from moldau.cluster.controlling.controller import NewTopic, Refusal
from moldau.cluster.state import layout
from moldau.errors import KafkaError
from moldau.metadata_store.store import Delete
from moldau.simulation.zookeeper import children_in
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import Members, play

ZOMBIE = "a zombie takes itself for the controller, and its first write is refused"
TRANSCRIPTS = {
    ZOMBIE: """
starts              | 1@1, no topics
1 creates t         | 1@1, t; t is created
1 hears nothing     | 1@1, t
1 is removed        | 1@1, t
somebody is elected | 1@1 2@2, t
2 creates u         | 1@1 2@2, t u; u is created
1 creates v         | 2@2, t u; v NOT_CONTROLLER
2 creates v         | 2@2, t u v; v is created
""",
    "a controller that is cut off answers what was asked of it once its session is over": """
starts              | 1@1, no topics
1 is cut off        | 1@1, no topics
1 creates t         | 1@1, no topics
somebody is elected | 2@2, no topics; t NOT_CONTROLLER
2 creates t         | 2@2, t; t is created
1 is back           | 2@2, t
""",
    "a controller that does not know whether it has written resigns, and the next one knows": """
starts              | 1@1, no topics
1 loses an answer   | 1@1, no topics
1 creates t         | 1@2, t; t NOT_CONTROLLER
1 creates t         | 1@2, t; t TOPIC_ALREADY_EXISTS
""",
}


class Played:
    """Three brokers, and what was asked of them."""

    def __init__(self, members: Members):
        self._members = members
        self._asked: dict[str, asyncio.Future[Any]] = {}

    def state(self) -> str:
        controllers = [one for one in self._members.values() if one.is_controller]
        shown = " ".join(f"{one.broker_id}@{one.image.controller_epoch}" for one in controllers)
        topics = " ".join(sorted(children_in(self._members.store.nodes, layout.TOPICS)))
        answers = [self._answer(name) for name in list(self._asked) if self._asked[name].done()]
        return "; ".join([f"{shown or 'nobody'}, {topics or 'no topics'}", *answers])

    def _answer(self, name: str) -> str:
        try:
            [(_, made)] = self._asked.pop(name).result()
        except KafkaError as error:
            return f"{name} {error.code.name}"
        return f"{name} {made.code.name}" if isinstance(made, Refusal) else f"{name} is created"

    async def happens(self, event: str) -> None:
        store = self._members.store
        match event.split():
            case ["starts"]:
                for number in (1, 2, 3):
                    await self._members.join(number)
                await self._members.shown(lambda image: list(image.brokers) == [1, 2, 3])
            case [number, "creates", name]:
                topics = self._members[int(number)].acting.topics
                self._asked[name] = asyncio.ensure_future(topics.create([NewTopic(name)]))
                await asyncio.sleep(2)
            case [number, "hears", "nothing"]:
                self._members[int(number)].session.link.on_event = lambda path: None
            case [_, "is", "removed"]:
                operator = ModelSession(store)
                await operator.multi([Delete(layout.CONTROLLER)])
                await operator.close()
            case [number, "is", "cut", "off"]:
                store.cut(self._members[int(number)].session.link)
            case [number, "loses", "an", "answer"]:
                store.lose_next_answer(self._members[int(number)].session.link)
            case ["somebody", "is", "elected"]:
                before = [one for one in self._members.values() if one.is_controller]
                await self._members.controller(lambda one: one not in before)
            case [number, "is", "back"]:
                store.mend(self._members[int(number)].session.link)
                await asyncio.sleep(0)
            case _:
                raise ValueError(event)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_one_controller_at_a_time_is_obeyed(name: str) -> None:
    lines = [line.partition("|") for line in TRANSCRIPTS[name].strip().splitlines()]
    found = []

    async def scenario(members: Members) -> None:
        played = Played(members)
        for event, _, _ in lines:
            await played.happens(event)
            found.append(f"{event.rstrip():<19} | {played.state()}")

    play(scenario)
    assert "\n".join(found) == TRANSCRIPTS[name].strip()
