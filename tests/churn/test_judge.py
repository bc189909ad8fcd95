"""The judge says nothing of a group where all is well, and finds each thing that is not: a check that cannot fail is
none."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.churn.evidence import BEAT, Answer, Current, Generation, Share, Trace
from tests.churn.judge import changes, counted_again, orphans, violations

SESSION_MS, HEARTBEAT_MS = 5000, 500
ALLOWED_MS = SESSION_MS + 2 * HEARTBEAT_MS + 1000
ALL, LEFT, RIGHT = frozenset({0, 1, 2, 3}), frozenset({0, 1}), frozenset({2, 3})


def join(at_ms: int, client: str, epoch: int, waited_ms: int = 0, error: str = "NONE") -> Answer:
    return Answer(at_ms - waited_ms, at_ms, "JoinGroup", client, f"{client}-id", epoch, error)


def answer(at_ms: int, api: str, client: str, epoch: int, error: str = "NONE") -> Answer:
    return Answer(at_ms, at_ms, api, client, f"{client}-id", epoch, error)


def generation(at_ms: int, number: int, **shares: frozenset[int]) -> Generation:
    return Generation(at_ms, number, {f"{client}-id": Share(client, given) for client, given in shares.items()})


def current(
    at_ms: int, client: str, epoch: int, assigned: frozenset[int], revoking: frozenset[int] = frozenset()
) -> Current:
    return Current(at_ms, epoch, f"{client}-id", client, assigned, revoking)


def classic() -> Trace:
    """`a` comes, then `b`; `b` is killed at 5,000, and is out a session time-out later."""
    return Trace(
        partitions=4,
        written=[generation(1010, 1, a=ALL), generation(2510, 2, a=LEFT, b=RIGHT), generation(10_700, 3, a=ALL)],
        answers=[
            join(1000, "a", 1),
            answer(1020, "SyncGroup", "a", 1),
            join(2500, "a", 2, 100),
            join(2500, "b", 2, 500),
            answer(2520, "SyncGroup", "a", 2),
            answer(2520, "SyncGroup", "b", 2),
            join(10_690, "a", 3),
            answer(10_710, "SyncGroup", "a", 3),
        ],
        dead_ms={"b": 5000},
        until_ms=20_000,
        produced={0: 2, 1: 1},
        processed=[(0, 0), (0, 1), (0, 1), (1, 0)],
    )


def newer() -> Trace:
    """`a` comes, then `b`, to which `a` gives back what is no longer its own; then `a` leaves."""
    return Trace(
        partitions=4,
        written=[
            current(1010, "a", 2, ALL),
            current(2000, "b", 3, frozenset()),
            current(2300, "a", 2, LEFT, RIGHT),
            current(2500, "a", 3, LEFT),
            current(2800, "b", 3, RIGHT),
            current(6000, "a", -1, frozenset()),
            current(6400, "b", 4, ALL),
        ],
        answers=[
            answer(1020, "ConsumerGroupHeartbeat", "a", 2),
            answer(2010, "ConsumerGroupHeartbeat", "b", 3),
            answer(2510, "ConsumerGroupHeartbeat", "a", 3),
            answer(2810, "ConsumerGroupHeartbeat", "b", 3),
            answer(6010, "ConsumerGroupHeartbeat", "a", -1),
            answer(6410, "ConsumerGroupHeartbeat", "b", 4),
        ],
        until_ms=20_000,
    )


def found(trace: Trace) -> list[str]:
    return violations(trace, SESSION_MS, HEARTBEAT_MS)


@pytest.mark.parametrize("well", [classic, newer])
def test_nothing_is_said_of_a_group_where_all_is_well(well: Callable[[], Trace]) -> None:
    assert found(well()) == []


def test_changes_are_members_that_come_go_and_die() -> None:
    assert [change.what for change in changes(classic())] == ["a joined", "b joined", "b died"]
    assert [change.what for change in changes(newer())] == ["a joined", "b joined", "a left"]


def test_the_time_without_an_owner_is_measured() -> None:
    longest = orphans(classic())[0]
    assert (longest.partition in RIGHT, longest.from_ms, longest.to_ms, longest.since) == (True, 5000, 10_700, "b died")


@dataclass(frozen=True)
class Wrong:
    """Something that must be found, and a word of the sentence about it."""

    name: str
    trace: Trace
    sentence: str

    def __str__(self) -> str:
        return self.name


def changed(trace: Trace, at: int, entry: Generation | Current) -> Trace:
    return trace._replace(written=[*trace.written[:at], entry, *trace.written[at + 1 :]])


def told(trace: Trace, count: int, client: str = "b") -> Trace:
    unknown = [answer(6000 + n, "Heartbeat", client, 2, "UNKNOWN_MEMBER_ID") for n in range(count)]
    return trace._replace(answers=[*trace.answers, *unknown])


def without(trace: Trace, **later: int) -> Trace:
    """Nothing is written or answered from then on; the last is a member's that lives."""
    since = later["since_ms"]
    written = [entry for entry in trace.written if entry.at_ms < since]
    return trace._replace(written=written, answers=[one for one in trace.answers if one.at_ms < since])


WRONG = [
    Wrong("two owners in a generation", changed(classic(), 1, generation(2510, 2, a=ALL, b=RIGHT)), "generation 2"),
    Wrong(
        "a generation that is written again with other owners",
        classic()._replace(
            written=[*classic().written[:2], generation(2600, 2, a=RIGHT, b=LEFT), classic().written[2]]
        ),
        "generation 2",
    ),
    Wrong("given before it was given back", changed(newer(), 1, current(2200, "b", 3, RIGHT)), "partition 2 is a-id's"),
    Wrong("given while it is being given back", changed(newer(), 3, current(2400, "b", 3, RIGHT)), "partition 2 is"),
    Wrong("nobody takes over from the dead", without(classic(), since_ms=10_000), "after b died"),
    Wrong("nobody takes over from who left", without(newer(), since_ms=6_300), "after a left"),
    Wrong(
        "a partition is given to nobody", changed(newer(), 6, current(6400, "b", 4, LEFT)), "partition 2 had no owner"
    ),
    Wrong(
        "a partition is given to the dead", changed(classic(), 2, generation(10_700, 3, a=LEFT, b=RIGHT)), "no owner"
    ),
    Wrong("nobody is ever given anything", classic()._replace(written=[]), "after b died"),
    Wrong(
        "who has gone back to joining has nothing",
        classic()._replace(answers=[*classic().answers, join(19_000, "a", -1, 7300, "REBALANCE_IN_PROGRESS")]),
        "no owner",
    ),
    Wrong("many members are told that they are unknown", told(told(classic(), 4), 4, "c"), "8 answers of UNKNOWN"),
    Wrong(
        "a member goes on committing",
        classic()._replace(
            answers=[*classic().answers, *[answer(6000, "OffsetCommit", "b", 2, "UNKNOWN_MEMBER_ID")] * 40]
        ),
        "40 commits of members that are unknown",
    ),
    Wrong("one member goes on asking", told(classic(), 6), "b-id was told 6 times"),
    Wrong(
        "generation upon generation",
        classic()._replace(answers=[*classic().answers, *(join(10_750, "a", n) for n in range(4, 15))]),
        "14 generations in 3 changes",
    ),
    Wrong(
        "a member that joins and joins",
        classic()._replace(answers=[*classic().answers, *(join(12_000 + n, "a", 3) for n in range(20))]),
        "a joined 21 times",
    ),
    Wrong("a lost record", classic()._replace(produced={0: 2, 1: 2}), "1 records of partition 1"),
    Wrong(
        "told of a generation that is not written",
        classic()._replace(written=classic().written[:2], until_ms=11_000),
        "a-id was told of 3",
    ),
    Wrong("told too early", changed(newer(), 6, current(6450, "b", 4, ALL)), "b-id was told of 4"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_wrong_is_found(wrong: Wrong) -> None:
    assert any(wrong.sentence in sentence for sentence in found(wrong.trace)), found(wrong.trace)


def test_every_change_begins_the_count_anew() -> None:
    late = changed(classic(), 2, generation(5000 + ALLOWED_MS + 100, 3, a=ALL))
    late = late._replace(answers=[one for one in late.answers if one.at_ms < 10_000])
    assert "after b died" in found(late)[0]
    with_c = late._replace(answers=[*late.answers, join(7000, "c", -1, error="MEMBER_ID_REQUIRED")])
    assert found(with_c) == []


def test_who_dies_before_it_has_joined_changes_nothing() -> None:
    assert changes(classic()._replace(dead_ms={"b": 5000, "c": 7000})) == changes(classic())


def test_a_generation_that_begins_with_a_dead_member_begins_the_count_anew() -> None:
    trace = classic()._replace(dead_ms={"b": 2200}, answers=[one for one in classic().answers if one.at_ms < 10_000])
    trace = changed(trace, 2, generation(2200 + ALLOWED_MS + 200, 3, a=ALL))
    assert orphans(trace)[0].since == "generation 2 began with b, who was dead"
    assert [sentence for sentence in found(trace) if "no owner" in sentence] == []


def test_what_a_member_still_has_while_it_joins_has_an_owner() -> None:
    cooperative = classic().written[2]
    assert isinstance(cooperative, Generation)
    share = cooperative.shares["a-id"]._replace(kept=LEFT)
    trace = changed(classic(), 2, cooperative._replace(shares={"a-id": share}))
    trace = trace._replace(answers=[*trace.answers, join(10_690, "a", 3, 8000)])
    assert {orphan.partition for orphan in orphans(trace, 5750)} == set()
    assert {orphan.partition for orphan in orphans(trace, 5000)} == RIGHT


def test_nobody_can_own_anything_where_nobody_is() -> None:
    gone = [current(6000, "b", -1, frozenset()), current(19_000, "c", 5, ALL)]
    answers = [*newer().answers[:-1], *(answer(at, BEAT, who, e) for at, who, e in ((6010, "b", -1), (19_010, "c", 5)))]
    trace = newer()._replace(written=[*newer().written[:-1], *gone], answers=answers)
    assert found(trace) == []
    forgotten = [one._replace(error="UNKNOWN_MEMBER_ID") if one.epoch == -1 else one for one in answers]
    assert found(trace._replace(answers=forgotten)) == []
    stays = trace._replace(answers=[one for one in answers if one != answer(6010, BEAT, "b", -1)])
    assert "no owner" in found(stays)[0]


def test_who_joins_again_and_is_given_the_same_has_it_again() -> None:
    again = [join(11_000, "a", 3), answer(11_300, "SyncGroup", "a", 3)]
    trace = classic()._replace(answers=[*classic().answers, *again])
    assert found(trace) == []
    assert [orphan.length_ms for orphan in orphans(trace) if orphan.from_ms == 11_000] == [300] * 4


def test_going_over_to_the_other_protocol_begins_the_count_anew() -> None:
    late = changed(newer(), 6, current(6000 + ALLOWED_MS + 300, "b", 4, ALL))
    late = late._replace(answers=late.answers[:-1])
    over = [*late.written[:6], generation(8000, 4, b=frozenset()), generation(8001, -1), late.written[6]]
    assert "after a left" in found(late)[0]
    assert found(late._replace(written=over)) == []
    assert orphans(late._replace(written=over))[0].since == "the group went over to the classic protocol"


def test_what_the_machine_took_is_not_counted() -> None:
    late = changed(newer(), 6, current(6000 + ALLOWED_MS + 300, "b", 4, ALL))
    late = late._replace(answers=late.answers[:-1])
    assert "after a left" in found(late)[0]
    assert found(late._replace(stalls=[(9000, 400)])) == []
    assert found(late._replace(stalls=[(19_000, 400)])) != []


def killed() -> Trace:
    """The broker is killed at 9,000, when members have joined generation 3, and is back at 11,000: as nobody wrote
    down what it was, generation 3 begins again then, in which `c` is instead of `b`."""
    before = [one for one in classic().answers if one.at_ms < 9000]
    return classic()._replace(
        written=[*classic().written[:2], generation(12_100, 3, a=LEFT, c=RIGHT)],
        answers=[
            *before,
            join(8900, "a", 3),
            join(12_000, "a", 3, 500),
            join(12_000, "c", 3, 800),
            answer(12_110, "SyncGroup", "a", 3),
            answer(12_110, "SyncGroup", "c", 3),
        ],
        kills=[(9000, 11_000)],
    )


def test_a_generation_that_was_not_written_may_be_counted_again_after_a_kill() -> None:
    assert found(killed()) == []
    assert counted_again(killed()) == 1
    assert counted_again(classic()) == 0


def test_a_generation_that_was_written_is_not_given_to_others_after_a_kill() -> None:
    both = [*killed().written[:2], generation(8950, 3, a=ALL), killed().written[2]]
    assert "generation 3: partition 2 is a-id's and c-id's" in found(killed()._replace(written=both))


def test_generations_are_not_counted_back() -> None:
    answers = [*classic().answers, join(12_000, "a", 2)]
    assert "a joined generation 2 when there had been 3" in found(classic()._replace(answers=answers))
    lower = [one._replace(epoch=1) if one.at_ms >= 12_000 else one for one in killed().answers]
    assert "a joined generation 1 when there had been 2" in found(killed()._replace(answers=lower))


def test_while_there_is_no_broker_nobody_takes_over_and_its_return_begins_the_count_anew() -> None:
    late_ms = 11_000 + ALLOWED_MS
    for at_ms, sentences in ((late_ms - 100, 0), (late_ms + 100, 2)):
        trace = classic()._replace(kills=[(5500, 11_000)], until_ms=30_000)
        trace = changed(trace, 2, generation(at_ms, 3, a=ALL))
        trace = trace._replace(
            answers=[
                *(one for one in trace.answers if one.at_ms < 5500),
                join(at_ms - 10, "a", 3),
                answer(at_ms + 10, "SyncGroup", "a", 3),
            ]
        )
        said = found(trace)
        assert len(said) == sentences and all("after the broker was back" in sentence for sentence in said)


def test_a_kill_is_no_excuse_for_a_storm() -> None:
    storm = [answer(11_100 + n, "Heartbeat", f"d{n}", 2, "UNKNOWN_MEMBER_ID") for n in range(12)]
    trace = killed()._replace(answers=[*killed().answers, *storm])
    assert "12 answers of UNKNOWN_MEMBER_ID" in found(trace)[0]


def test_what_a_member_still_reads_that_was_to_give_it_back_has_an_owner() -> None:
    slow = changed(changed(newer(), 3, current(17_500, "a", 3, LEFT)), 4, current(17_800, "b", 3, RIGHT))
    slow = slow._replace(written=slow.written[:5], answers=[*newer().answers[:2], answer(17_810, BEAT, "b", 3)])
    assert "partition 2 had no owner" in " ".join(found(slow))
    reads = list(range(2300, 17_500, 100))
    assert found(slow._replace(read_ms={("a", 2): reads, ("a", 3): reads})) == []
    stopped = [at_ms for at_ms in reads if at_ms < 4000]
    after = {("a", 2): stopped, ("a", 3): reads, ("b", 2): [18_000]}
    assert "partition 2 had no owner" in " ".join(found(slow._replace(read_ms=after)))
