"""Pairs of offsets are told by MirrorMaker's rule, and no translation is ahead of the record that it stands for."""

import bisect
import random

import pytest

from moldau.mirror.foreign.offset_syncs import (
    SYNCS_MAX,
    OffsetTranslation,
    Run,
    SyncRule,
    runs_of,
    thinned,
)
from moldau.names import TopicPartition

TP = TopicPartition("orders", 0)


def test_runs_end_where_offsets_do_not_follow() -> None:
    assert runs_of([5, 6, 7], [(0, 3)]) == [Run(5, 0, 3)]
    assert runs_of([5, 6, 9, 10, 12], [(0, 3), (7, 2)]) == [Run(5, 0, 2), Run(9, 2, 1), Run(10, 7, 1), Run(12, 8, 1)]
    assert runs_of([], []) == []


def test_the_first_record_is_told_then_one_each_so_many_and_after_each_gap() -> None:
    rule = SyncRule(100)
    assert rule.copied([Run(10, 0, 1)]) == [(10, 0)]
    assert rule.copied([Run(11, 1, 99)]) == []
    # A translation is one behind the pair, so it is 100 early for the 102nd record.
    assert rule.copied([Run(110, 100, 203)]) == [(111, 101), (212, 202)]
    assert rule.copied([Run(400, 303, 1)]) == [(400, 303)]
    assert rule.copied([Run(401, 2, 1)]) == [(401, 2)], "the mirror goes back"


def test_mirror_maker_told_the_same_pairs() -> None:
    """What Kafka 4.3.1 wrote of 125 records: two pairs while it copied them, and the last one later."""
    rule = SyncRule(100)
    told = [*rule.copied([Run(0, 0, 125)]), *rule.last()]
    assert told == [(0, 0), (101, 101), (124, 124)]
    before, after = translation(*told[:2]), translation(*told)
    assert [before.translate(TP, offset) for offset in (60, 125)] == [1, 102]
    assert after.translate(TP, 125) == 125


def test_the_last_record_is_told_once() -> None:
    rule = SyncRule(100)
    assert rule.last() == []
    assert rule.copied([Run(0, 0, 1)]) == [(0, 0)] and rule.last() == []
    assert rule.copied([Run(1, 1, 5)]) == [] and rule.last() == [(5, 5)] and rule.last() == []


def test_the_last_record_is_told_after_a_restart() -> None:
    rule = SyncRule(100, 50, 40)
    assert rule.last() == [(49, 39)] and rule.last() == []
    assert SyncRule(100, 50, 40).copied([Run(50, 41, 1)]) == [(50, 41)], "the first one that this worker copies"
    assert SyncRule(100, 50, 0).last() == [], "nothing was copied"


def test_each_record_is_told_where_no_lag_is_allowed() -> None:
    assert SyncRule(0).copied([Run(0, 0, 4)]) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_transaction_tells_a_limited_number_of_pairs_the_last_among_them() -> None:
    for count in (1, 9, 10, 11, 95, 100, 1000):
        pairs = [(n, n) for n in range(count)]
        few = thinned(pairs)
        assert len(few) <= SYNCS_MAX and few[-1] == pairs[-1] and few == sorted(few)


def translation(*pairs: tuple[int, int]) -> OffsetTranslation:
    made = OffsetTranslation()
    for pair in pairs:
        made.add(TP, *pair)
    made.is_complete = True
    return made


@pytest.mark.parametrize(
    ("offset", "wanted"), [(99, None), (100, 10), (101, 11), (199, 11), (200, 95), (201, 96), (9_999, 96)]
)
def test_a_position_is_one_behind_the_last_pair_before_it(offset: int, wanted: int | None) -> None:
    assert translation((100, 10), (200, 95)).translate(TP, offset) == wanted


def test_nothing_is_translated_before_the_pairs_were_read_to_their_end() -> None:
    made = translation((100, 10))
    assert made.translate(TopicPartition("orders", 1), 100) is None
    made.is_complete = False
    assert made.translate(TP, 100) is None


@pytest.mark.parametrize("later", [(50, 20), (150, 3)], ids=["source", "mirror"])
def test_a_topic_that_was_made_anew_ends_all_that_was_told_of_it(later: tuple[int, int]) -> None:
    made = translation((90, 9), (100, 10), later)
    assert made.translate(TP, 120) == (later[1] + 1 if later[0] <= 120 else None)
    assert made.translate(TP, 49) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_translation_is_never_ahead_and_near_the_end_seldom_far_behind(seed: int) -> None:
    """Sources with gaps, mirrors with markers, restarts of workers; groups anywhere."""
    chance = random.Random(seed)
    there: dict[int, int] = {}
    known: list[int] = []
    made, rule, upstream, downstream = OffsetTranslation(), SyncRule(10), 0, 0
    made.is_complete = True
    for _ in range(200):
        if chance.random() < 0.05:
            upstream += chance.randrange(2)  # a marker
            rule = SyncRule(10, upstream + 1, max(downstream - 1, 0))  # behind the last record, before the marker
            for pair in rule.last() if chance.random() < 0.5 else ():
                made.add(TP, *pair)
        offsets = []
        for _ in range(chance.randrange(1, 30)):
            upstream += 1 if chance.random() < 0.97 else chance.randrange(2, 9)
            offsets.append(upstream)
        placed = [(downstream, len(offsets))]
        there |= {offset: downstream + n for n, offset in enumerate(offsets)}
        downstream += len(offsets) + 1
        known += offsets
        for pair in rule.copied(runs_of(offsets, placed)):
            made.add(TP, *pair)
        for _ in range(20):
            group = chance.randrange(upstream + 2)
            position = made.translate(TP, group)
            at = bisect.bisect_left(known, group)
            limit = there[known[at]] if at < len(known) else downstream
            if position is not None:
                assert position <= limit, (group, position, limit)
        nearest = made.translate(TP, upstream)
        assert nearest is not None and there[upstream] - nearest <= 30 + 11
    assert sum(len(pairs) for pairs in made._pairs.values()) <= 128
