"""A partition whose replicas change, as transcripts: each line is `event | state`, or `event | refused`.

The state is `REPLICAS LEADER@EPOCH isr=...`, where a replica that is being added has a plus, and one that is being
removed a minus; `elr=` and `last=` if there are some. Events:

    starts 1,2,3 least 2      all in sync, the first leads, min.insync.replicas is 2
    to 3,4                    a plan; `cancel` takes it back
    isr 1,3                   the controller has accepted this ISR of the leader
    goes 1                    the session of broker 1 is over
    back 1                    it registers again, and has lost nothing
    ends                      the controller looks whether the reassignment ends
"""

import uuid

import pytest

from moldau.cluster.state.eligibility import elected, with_isr, without
from moldau.cluster.state.image import PartitionImage, TopicImage
from moldau.cluster.state.reassignment import (
    begun,
    cancelled,
    ended,
    is_under_way,
    next_ended,
    originals_of,
    target_of,
)
from tests.cluster.transcripts import numbers, state

TRANSCRIPTS = {
    "a move, as Kafka 4.3.1 has it": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        to 3,4               | 3,+4,-1,-2 1@0 isr=1,2,3
        ends                 | refused
        isr 1,2,3,4          | 3,+4,-1,-2 1@0 isr=1,2,3,4
        ends                 | 3,4 3@1 isr=3,4
        ends                 | refused
    """,
    "from three replicas to two and back": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        to 1,2               | 1,2,-3 1@0 isr=1,2,3
        ends                 | 1,2 1@1 isr=1,2
        to 1,2,3             | 1,2,+3 1@1 isr=1,2
        ends                 | refused
        isr 1,2,3            | 1,2,+3 1@1 isr=1,2,3
        ends                 | 1,2,3 1@1 isr=1,2,3
    """,
    "from one broker to another": """
        starts 1 least 1     | 1 1@0 isr=1
        to 2                 | +2,-1 1@0 isr=1
        isr 1,2              | +2,-1 1@0 isr=1,2
        ends                 | 2 2@1 isr=2
    """,
    "another order is there at once": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        to 3,1,2             | 3,1,2 1@0 isr=1,2,3
        ends                 | refused
        cancel               | 3,1,2 1@0 isr=1,2,3
    """,
    "a cancelled move, as Kafka 4.3.1 has it": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        to 3,4               | 3,+4,-1,-2 1@0 isr=1,2,3
        cancel               | 3,1,2 1@1 isr=3,1,2
    """,
    "a cancelled move whose new replica is in sync and leads": """
        starts 1,2 least 2   | 1,2 1@0 isr=1,2
        to 3,4               | +3,+4,-1,-2 1@0 isr=1,2
        isr 1,2,3            | +3,+4,-1,-2 1@0 isr=1,2,3
        goes 1               | +3,+4,-1,-2 3@1 isr=2,3
        cancel               | 1,2 2@2 isr=2
        goes 2               | 1,2 -@3 isr= elr=2
        back 1               | 1,2 -@3 isr= elr=2
        back 2               | 1,2 2@4 isr=2
    """,
    "a cancelled removal drops nobody": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        isr 1                | 1,2,3 1@0 isr=1 elr=2,3
        to 1,2               | 1,2,-3 1@0 isr=1 elr=2,3
        cancel               | 1,2,3 1@0 isr=1 elr=2,3
    """,
    "no cancelling that leaves nobody in sync": """
        starts 1 least 1     | 1 1@0 isr=1
        to 2                 | +2,-1 1@0 isr=1
        isr 1,2              | +2,-1 1@0 isr=1,2
        goes 1               | +2,-1 2@1 isr=2
        cancel               | refused
        to 1                 | refused
        to 3                 | refused
        to 2,3               | +2,+3,-1 2@1 isr=2
        ends                 | refused
        isr 2,3              | +2,+3,-1 2@1 isr=2,3
        ends                 | 2,3 2@2 isr=2,3
    """,
    "an offline partition takes a plan, which waits, and is not cancelled, as in Kafka 4.3.1": """
        starts 1 least 1     | 1 1@0 isr=1
        goes 1               | 1 -@1 isr= elr=1
        to 2                 | +2,-1 -@1 isr= elr=1
        ends                 | refused
        cancel               | refused
        back 1               | +2,-1 1@2 isr=1
        isr 1,2              | +2,-1 1@2 isr=1,2
        ends                 | 2 2@3 isr=2
    """,
    "another plan over a running one drops what only the first one added": """
        starts 1,2 least 2   | 1,2 1@0 isr=1,2
        to 2,3               | 2,+3,-1 1@0 isr=1,2
        isr 1,2,3            | 2,+3,-1 1@0 isr=1,2,3
        to 2,4               | 2,+4,-1 1@1 isr=2,1
        cancel               | 2,1 1@2 isr=2,1
    """,
    "another plan over a running one keeps what both add": """
        starts 1,2 least 2   | 1,2 1@0 isr=1,2
        to 3,2               | +3,2,-1 1@0 isr=1,2
        to 4,3               | +4,+3,-2,-1 1@0 isr=1,2
        isr 1,2,3            | +4,+3,-2,-1 1@0 isr=1,2,3
        ends                 | refused
        isr 1,2,3,4          | +4,+3,-2,-1 1@0 isr=1,2,3,4
        ends                 | 4,3 4@1 isr=4,3
    """,
    "the originals as another plan take the first one back": """
        starts 1,2 least 2   | 1,2 1@0 isr=1,2
        to 3,4               | +3,+4,-1,-2 1@0 isr=1,2
        to 1,2               | 1,2 1@1 isr=1,2
        ends                 | refused
    """,
    "a dead broker in the target is waited for where replicas become fewer": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        goes 3               | 1,2,3 1@0 isr=1,2
        to 3,4               | 3,+4,-1,-2 1@0 isr=1,2
        isr 1,2,4            | 3,+4,-1,-2 1@0 isr=1,2,4
        ends                 | refused
        isr 1,2,3,4          | 3,+4,-1,-2 1@0 isr=1,2,3,4
        ends                 | 3,4 3@1 isr=3,4
    """,
    "a replica that stays and is away holds up no move (KAFKA-19975)": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        goes 2               | 1,2,3 1@0 isr=1,3
        to 2,1,4             | 2,1,+4,-3 1@0 isr=1,3
        ends                 | refused
        isr 1,3,4            | 2,1,+4,-3 1@0 isr=1,3,4
        ends                 | 2,1,4 1@1 isr=1,4
    """,
    "nor does it hold up one that only adds replicas": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        goes 2               | 1,2,3 1@0 isr=1,3
        to 1,2,3,4           | 1,2,3,+4 1@0 isr=1,3
        ends                 | refused
        isr 1,3,4            | 1,2,3,+4 1@0 isr=1,3,4
        ends                 | 1,2,3,4 1@0 isr=1,3,4
    """,
    "a target replica that leads goes on in a new epoch": """
        starts 1,2 least 1   | 1,2 1@0 isr=1,2
        to 3,1               | +3,1,-2 1@0 isr=1,2
        isr 1,3              | +3,1,-2 1@0 isr=1,3
        ends                 | 3,1 1@1 isr=3,1
    """,
    "fewer replicas than min.insync.replicas need all they have, and nobody is eligible beside them": """
        starts 1,2,3 least 3 | 1,2,3 1@0 isr=1,2,3
        goes 3               | 1,2,3 1@0 isr=1,2 elr=3
        to 2,1               | 2,1,-3 1@0 isr=1,2 elr=3
        ends                 | 2,1 1@1 isr=2,1
    """,
    "who may have lost records, and is a replica no longer, is forgotten": """
        starts 1,2,3 least 2 | 1,2,3 1@0 isr=1,2,3
        isr 1                | 1,2,3 1@0 isr=1 elr=2,3
        back 2 lost          | 1,2,3 1@0 isr=1 elr=3 last=2
        to 1                 | 1,-2,-3 1@0 isr=1 elr=3 last=2
        ends                 | 1 1@1 isr=1
    """,
}


def marked(part: PartitionImage) -> str:
    marks = dict.fromkeys(part.adding_replicas, "+") | dict.fromkeys(part.removing_replicas, "-")
    replicas = ",".join(marks.get(one, "") + str(one) for one in part.replicas)
    return f"{replicas} {state(part)}"


class Played:
    def __init__(self, replicas: tuple[int, ...], least: int):
        self.part = PartitionImage(replicas[0], 0, replicas, replicas)
        self.least = least
        self.away: set[int] = set()

    def happens(self, event: str) -> str:
        after: PartitionImage | None = self.part
        match event.split():
            case ["to", target]:
                after = begun(self.part, numbers(target), self.least)
            case ["cancel"]:
                after = cancelled(self.part, self.least)
            case ["ends"]:
                after = ended(self.part, self.least)
            case ["isr", isr]:
                after = with_isr(self.part, numbers(isr), self.least)
            case ["goes", broker]:
                self.away.add(int(broker))
                after = self._elected(without(self.part, [int(broker)], self.least))
            case ["back", broker, *lost]:
                self.away.discard(int(broker))
                gone = [int(broker)] if lost else []
                after = self._elected(without(self.part, gone, self.least, gone))
            case _:
                raise ValueError(event)
        if after is None:
            return "refused"
        self.part = after
        return marked(after)

    def _elected(self, part: PartitionImage) -> PartitionImage:
        return elected(part, lambda one: one not in self.away, self.least)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_reassignment(name: str) -> None:
    lines = [line.strip() for line in TRANSCRIPTS[name].strip().splitlines()]
    events = [line.partition("|")[0].rstrip() for line in lines]
    _, replicas, _, least = events[0].split()
    played = Played(numbers(replicas), int(least))
    found = [f"{events[0]:<20} | {marked(played.part)}"]
    found += [f"{event:<20} | {played.happens(event)}" for event in events[1:]]
    assert found == lines


def test_a_replica_keeps_its_log_folder_and_a_new_one_has_none_yet() -> None:
    part = PartitionImage(1, 0, (1, 2), (1, 2), ("one", "two"))
    moving = begun(part, (2, 3), 1)
    assert moving is not None and moving.directories == ("two", "", "one")
    done = ended(with_isr(moving, (1, 2, 3), 1), 1)
    assert done is not None and done.directories == ("two", "")


def topic(*parts: PartitionImage) -> TopicImage:
    return TopicImage("t", uuid.UUID(int=1), parts, {})


def test_only_the_partitions_whose_targets_are_in_sync_end() -> None:
    rest = PartitionImage(1, 0, (1, 2), (1, 2))
    waiting = begun(rest, (2, 3), 1)
    assert waiting is not None
    ready = with_isr(waiting, (1, 2, 3), 1)
    assert [is_under_way(one) for one in (rest, waiting, ready)] == [False, True, True]
    assert (originals_of(ready), target_of(ready)) == ((2, 1), (2, 3))
    found = list(next_ended([topic(rest, waiting, ready, ready)], lambda _: 1))
    assert [(one.topic, one.number, one.partition.replicas) for one in found] == [("t", 2, (2, 3)), ("t", 3, (2, 3))]


def test_a_node_by_which_every_replica_is_being_removed_never_ends() -> None:
    """No plan of ours is like that; anybody may write into the store."""
    part = PartitionImage(1, 0, (1, 2), (1, 2), removing_replicas=(1, 2))
    assert ended(part, 1) is None
