"""Bugs of mirrors put in on purpose: the tests of each rule find them."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

from moldau.mirror.foreign.copy_positions import ResumePoint
from moldau.mirror.planning import TopicPlan
from tests.mirror import test_access as access
from tests.mirror import test_copies as copies
from tests.mirror import test_planning as planning
from tests.mirror import test_source_session as sessions
from tests.mirror.foreign import test_copy_positions as positions
from tests.mirror.foreign import test_offset_syncs as syncs
from tests.mirror.foreign import test_policy as policy
from tests.replacing import Instead, assert_found, nothing, returns

COPIES = "moldau.mirror.copies"
SESSION = "moldau.mirror.source_session:SourceSession"
PLAN = "moldau.mirror.planning:plan"
Do = Callable[..., Any]


def _writes_to_any_topic(plan: Do, name: str, source: Any, mirror_source: str, target: Any, target_id: str) -> Any:
    if target is not None and not target.settings.get("mirror.source"):
        target = target._replace(settings={**target.settings, "mirror.source": mirror_source})
    return plan(name, source, mirror_source, target, target_id)


def _mirrors_back(plan: Do, name: str, source: Any, *rest: Any) -> Any:
    return plan(name, source._replace(source=""), *rest)


def _copies_all(to_add: Do, of_source: Iterable[Any], of_target: Collection[Any], _: object) -> list[Any]:
    return [one for one in of_source if one not in of_target]


def _any_answer_counts(answered: Do, self: Any, reply: Any) -> Any:
    self._has.update(self._wanted)
    return answered(self, reply)


def _counts_on(translate: Do, self: Any, tp: Any, offset: int) -> int | None:
    """As if the mirror had an offset for each offset of the source."""
    for upstream, downstream in reversed(self._pairs.get(tp, ())):
        if upstream <= offset:
            return downstream + offset - upstream  # type: ignore[no-any-return]
    return None


def _believed(judged: Do, tp: Any, remote: str, at: Any, logs: Any) -> ResumePoint:
    return judged(tp, remote, at, logs) if at is None else ResumePoint(at.upstream, at.epoch, at.downstream)  # type: ignore[no-any-return]


def _takes_nothing_back(following: Do, *topic: Any) -> TopicPlan:
    plan: TopicPlan = following(*topic)
    return plan._replace(changes={name: value for name, value in plan.changes.items() if value is not None})


BUGS: dict[str, tuple[Instead, Callable[[], None]]] = {
    "a source that lost records is followed": (
        Instead(f"{COPIES}:divergence", returns("")),
        copies.test_what_one_of_the_logs_has_deleted_cannot_be_compared,
    ),
    "a batch of another producer counts as compacted": (
        Instead(f"{COPIES}:_written_as", lambda _, batch: batch.last_offset),
        lambda: copies.test_a_batch_of_another_content_or_writer_is_another_one(copies.CLEANED._replace(producer_id=8)),
    ),
    "a topic that is no mirror is written to": (
        Instead(PLAN, _writes_to_any_topic),
        lambda: planning.test_a_topic_that_cannot_be_mirrored_has_a_sentence(
            planning.SourceTopic(3, {}, ""), planning.TargetTopic(3, {}), "orders exists in the target cluster"
        ),
    ),
    "a mirror is mirrored back": (
        Instead(PLAN, _mirrors_back),
        lambda: planning.test_a_topic_that_cannot_be_mirrored_has_a_sentence(
            planning.SourceTopic(3, {}, "target-id/x"), None, "orders is a mirror of the target cluster itself"
        ),
    ),
    "settings that the source has taken back stay": (
        Instead("moldau.mirror.planning:following", _takes_nothing_back),
        planning.test_a_mirror_is_expanded_and_configured_as_its_source,
    ),
    "rights on topics that are not mirrored are copied": (
        Instead("moldau.mirror.access:to_add", _copies_all),
        lambda: access.test_a_right_that_names_a_mirrored_topic_is_copied_once(access.right("payments"), False),
    ),
    "an answer counts though other offsets are wanted by now": (
        Instead(f"{SESSION}.answered", _any_answer_counts),
        sessions.test_an_answer_counts_only_if_the_partition_is_wanted_as_it_was_asked_for,
    ),
    "a session goes on when the leader has lost it": (
        Instead(f"{SESSION}.lost", nothing),
        lambda: sessions.test_a_lost_session_is_begun_again_with_everything(
            sessions.ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        ),
    ),
    "a group's position is counted on from a pair": (
        Instead("moldau.mirror.foreign.offset_syncs:OffsetTranslation.translate", _counts_on),
        lambda: syncs.test_a_translation_is_never_ahead_and_near_the_end_seldom_far_behind(0),
    ),
    "a circle of mirrors is not seen": (
        Instead("moldau.mirror.foreign.policy:ReplicationPolicy.is_cycle", returns(False)),
        lambda: policy.test_a_topic_that_came_from_the_target_is_a_cycle("B.orders", "B", "orders", True),
    ),
    "a position of other logs is believed": (
        Instead("moldau.mirror.foreign.copy_positions:judged", _believed),
        lambda: positions.test_a_position_of_other_logs_is_refused(
            positions.AT, positions.LOGS._replace(target_id=positions.OTHER), "A.orders was made anew"
        ),
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert_found(*BUGS[name])
