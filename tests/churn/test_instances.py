"""Static members: the judge says nothing of an instance that comes back as it should, and finds what is wrong with one
that does not."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.churn.evidence import BEAT, Answer, Current, Generation, Share, Trace
from tests.churn.instances import returns
from tests.churn.judge import orphans, violations

SESSION_MS, HEARTBEAT_MS = 5000, 500
ALL, LEFT, RIGHT, NONE = frozenset({0, 1, 2, 3}), frozenset({0, 1}), frozenset({2, 3}), frozenset[int]()


def answer(at_ms: int, api: str, client: str, epoch: int, error: str = "NONE") -> Answer:
    return Answer(at_ms, at_ms, api, client, f"{client}-id", epoch, error)


def generation(at_ms: int, number: int, **shares: frozenset[int]) -> Generation:
    """`b` and `b2` are two lives of the instance B, as `a` is one of A; the group keeps the client of the first."""
    said = {
        f"{client}-id": Share(client[0], given, instance=client[0].upper() if client[0] in "ab" else None)
        for client, given in shares.items()
    }
    return Generation(at_ms, number, said)


def current(at_ms: int, client: str, epoch: int, assigned: frozenset[int], revoking: frozenset[int] = NONE) -> Current:
    return Current(at_ms, epoch, f"{client}-id", client[0], assigned, revoking, client[0].upper())


def beats(client: str, epoch: int, from_ms: int, to_ms: int, api: str = "Heartbeat") -> list[Answer]:
    return [answer(at_ms, api, client, epoch) for at_ms in range(from_ms, to_ms, HEARTBEAT_MS)]


def classic() -> Trace:
    """`a` and `b` are there; `b` dies at 5,000 and is back at 6,000, in its place."""
    return Trace(
        partitions=4,
        written=[generation(1010, 1, a=LEFT, b=RIGHT), generation(6000, 1, a=LEFT, b2=RIGHT)],
        answers=sorted(
            [
                *(answer(1000, "JoinGroup", client, 1) for client in "ab"),
                *(answer(1020, "SyncGroup", client, 1) for client in "ab"),
                *beats("a", 1, 1500, 20_000),
                *beats("b", 1, 1500, 5000),
                Answer(5999, 6001, "JoinGroup", "b2", "b2-id", 1, "NONE"),
                answer(6010, "SyncGroup", "b2", 1),
                *beats("b2", 1, 6500, 20_000),
            ],
            key=lambda one: one.at_ms,
        ),
        dead_ms={"b": 5000},
        until_ms=20_000,
    )


def newer() -> Trace:
    """`a` and `b` are there; `b` leaves for now at 5,000, and what it has is `b2`'s at 6,000."""
    return Trace(
        partitions=4,
        written=[
            current(1010, "a", 2, LEFT),
            current(1010, "b", 2, RIGHT),
            current(5000, "b", -2, RIGHT),
            current(6000, "b", -1, NONE),
            current(6000, "b2", 0, RIGHT),
            current(6000, "b2", 2, RIGHT),
        ],
        answers=sorted(
            [
                *beats("a", 2, 1020, 20_000, BEAT),
                *beats("b", 2, 1020, 5000, BEAT),
                answer(5001, BEAT, "b", -2),
                *beats("b2", 2, 6001, 20_000, BEAT),
            ],
            key=lambda one: one.at_ms,
        ),
        until_ms=20_000,
    )


def dropped(trace: Trace, at_ms: int) -> Trace:
    """What `b` left is given away then."""
    written = [*trace.written[:3], current(at_ms, "b", -1, NONE), current(at_ms + 10, "a", 3, ALL)]
    told = [one for one in trace.answers if one.client != "b2"]
    return trace._replace(written=written, answers=[*told, answer(at_ms + 20, BEAT, "a", 3)], until_ms=at_ms + 5000)


def found(trace: Trace) -> list[str]:
    return violations(trace, SESSION_MS, HEARTBEAT_MS)


@pytest.mark.parametrize("well", [classic, newer])
def test_nothing_is_said_of_an_instance_that_comes_back(well: Callable[[], Trace]) -> None:
    assert found(well()) == []


def test_a_return_to_a_group_at_rest_is_known_as_one() -> None:
    (only,) = returns(classic(), SESSION_MS, HEARTBEAT_MS)
    assert (only.instance, only.number, only.answer.client) == ("B", 1, "b2")


def test_what_an_instance_has_is_without_an_owner_while_it_is_away() -> None:
    for trace in (classic(), newer()):
        away = [one for one in orphans(trace, 100) if one.partition in RIGHT]
        assert [(one.from_ms // 10, one.to_ms) for one in away] in ([(500, 5999)] * 2, [(500, 6000)] * 2)


def test_an_instance_that_does_not_come_back_is_replaced_after_its_session() -> None:
    assert found(dropped(newer(), 10_000)) == []
    written = [classic().written[0], generation(10_200, 2, a=ALL)]
    gone = classic()._replace(written=written, answers=[one for one in classic().answers if one.client != "b2"])
    joined = [answer(10_190, "JoinGroup", "a", 2), answer(10_210, "SyncGroup", "a", 2)]
    assert found(gone._replace(answers=sorted([*gone.answers, *joined], key=lambda one: one.at_ms))) == []


def test_a_rival_that_is_refused_is_nobody_who_comes_or_goes() -> None:
    refused = [answer(7000, BEAT, "c", 0, "UNRELEASED_INSTANCE_ID"), answer(7100, BEAT, "c", -2, "FENCED_INSTANCE_ID")]
    trace = newer()._replace(answers=[*newer().answers, *refused])
    assert found(trace) == []
    assert orphans(trace) == orphans(newer())


@dataclass(frozen=True)
class Wrong:
    """Something that must be found, and a word of the sentence about it."""

    name: str
    trace: Trace
    sentence: str

    def __str__(self) -> str:
        return self.name


def changed(trace: Trace, **by_at: Current) -> Trace:
    written = list(trace.written)
    for at, entry in by_at.items():
        written[int(at.removeprefix("at_"))] = entry
    return trace._replace(written=written)


def also(trace: Trace, *answers: Answer) -> Trace:
    return trace._replace(answers=sorted([*trace.answers, *answers], key=lambda one: one.at_ms))


def joined_instead(trace: Trace, epoch: int, at_ms: int = 6001) -> Trace:
    answers = [
        one._replace(epoch=epoch, at_ms=at_ms) if one.api == "JoinGroup" and one.client == "b2" else one
        for one in trace.answers
    ]
    return trace._replace(answers=answers)


def taken() -> Trace:
    """`b2` has what is `b`'s at 8,000, without `b` having gone."""
    written = [*newer().written[:2], current(8000, "b", -1, NONE), current(8000, "b2", 2, RIGHT)]
    answers = [one for one in newer().answers if one.client == "a"]
    return also(newer()._replace(written=written, answers=answers), *beats("b", 2, 1020, 8000, BEAT))


WRONG = [
    Wrong("a fenced member goes on", also(classic(), *beats("b", 1, 8000, 9000)), "b-id was granted Heartbeat at 8000"),
    Wrong(
        "a fenced member goes on committing",
        also(classic(), answer(8000, "OffsetCommit", "b", 1)),
        "b-id was granted OffsetCommit",
    ),
    Wrong(
        "a fenced member of the consumer protocol goes on", also(newer(), *beats("b", 2, 8000, 8400, BEAT)), "b-id was"
    ),
    Wrong(
        "a member is fenced for nobody",
        also(classic(), answer(8000, "Heartbeat", "b2", 1, "FENCED_INSTANCE_ID")),
        "b2-id was told at 8000 that another is B",
    ),
    Wrong("a return begins a generation", joined_instead(classic(), 2), "joined generation 2 instead of 1"),
    Wrong(
        "others have to join again for a return",
        also(classic(), answer(6600, "Heartbeat", "a", 1, "REBALANCE_IN_PROGRESS")),
        "a had to join again at 6600",
    ),
    Wrong(
        "a return waits until others have joined again",
        also(
            joined_instead(classic(), 2, 7000),
            answer(6600, "Heartbeat", "a", 1, "REBALANCE_IN_PROGRESS"),
            Answer(6650, 7000, "JoinGroup", "a", "a-id", 2, "NONE"),
        )._replace(written=[classic().written[0], generation(7010, 2, a=LEFT, b2=RIGHT)]),
        "a had to join again at 6600",
    ),
    Wrong(
        "an instance has what another has",
        classic()._replace(written=[classic().written[0], generation(6000, 1, a=LEFT, b2=ALL)]),
        "partition 0 is A's and B's",
    ),
    Wrong(
        "what is kept is given away too early", dropped(newer(), 6500), "B was no longer b-id's at 6500, 1980 ms after"
    ),
    Wrong(
        "what is kept is given away while it is kept",
        changed(newer(), at_3=current(5500, "a", 3, ALL)),
        "partition 2 is b-id's and a-id's",
    ),
    Wrong(
        "an instance comes back to less than it had",
        changed(newer(), at_4=current(6000, "b2", 0, NONE), at_5=current(6000, "b2", 2, RIGHT)),
        "to less than it had: without [2, 3]",
    ),
    Wrong(
        "an instance is taken over while it is there",
        taken(),
        "B was no longer b-id's at 8000",
    ),
    Wrong(
        "an instance that died loses its place too early",
        classic()._replace(written=[classic().written[0], generation(6500, 2, a=ALL)]),
        "B was no longer b-id's at 6500, 2000 ms",
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_wrong_is_found(wrong: Wrong) -> None:
    assert any(wrong.sentence in sentence for sentence in found(wrong.trace)), found(wrong.trace)


def test_nothing_is_certain_of_a_return_while_others_join_leave_or_are_dead() -> None:
    certain = joined_instead(classic(), 2)
    assert "joined generation 2 instead of 1" in found(certain)[0]
    for doubt in (
        also(certain, answer(5500, "JoinGroup", "c", -1, "MEMBER_ID_REQUIRED")),
        also(certain, answer(5500, "LeaveGroup", "c", -1)),
        also(certain, answer(5500, "Heartbeat", "a", 1, "REBALANCE_IN_PROGRESS")),
        certain._replace(dead_ms={**certain.dead_ms, "a": 5800}),
        certain._replace(kills=[(5100, 5600)]),
        certain._replace(answers=[one for one in certain.answers if one.client != "b" or one.at_ms < 1500]),
    ):
        assert returns(doubt, SESSION_MS, HEARTBEAT_MS) == []
