"""Bugs of the controller put in on purpose: the tests of its rules find each. Bugs of the model's rules are in
`test_replication_model`, those of followers and leaders in `tests/replication`, and what only many brokers together
show in `tests/worlds`."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from moldau.cluster.state.image import PartitionImage
from moldau.metadata_store.store import OutcomeUnknown
from tests.cluster import test_following as following
from tests.cluster.controlling import test_acting as acting
from tests.cluster.controlling import test_change_queue as changes
from tests.cluster.controlling import test_isr_alterations as alterations
from tests.cluster.controlling import test_transcripts as transcripts
from tests.cluster.state import test_eligibility as eligibility
from tests.cluster.state import test_lease as lease
from tests.cluster.state import test_move_throttles as throttles
from tests.cluster.state import test_reassignment as reassignment
from tests.replacing import Instead, assert_found, returns

THROTTLES = "moldau.cluster.state.move_throttles"
REASSIGNMENT = "moldau.cluster.state.reassignment"
QUEUE = "moldau.cluster.controlling.change_queue:ChangeQueue"
Do = Callable[..., Any]


def _checks_no_epoch(begin: Do, self: Any, store: Any, fence: Any) -> None:
    begin(self, store, fence._replace(version=-1))


async def _tries_again(commit: Do, self: Any, operations: Sequence[Any]) -> None:
    try:
        await commit(self, operations)
    except OutcomeUnknown:
        await commit(self, operations)


def _keeps_eligible(with_isr: Do, part: PartitionImage, *rest: Any) -> PartitionImage:
    after: PartitionImage = with_isr(part, *rest)
    return after if after.elr else after._replace(elr=tuple(one for one in part.elr if one not in after.isr))


def _takes_any_controllers(take: Do, self: Any, taken: Any) -> None:
    take(self, taken._replace(controller_epoch=max(taken.controller_epoch, self._epoch)))


async def _answers_as_an_older_one(
    follow: Do, self: Any, broker_id: int, broker_epoch: int, controller_epoch: int, *rest: Any
) -> Any:
    return await follow(self, broker_id, broker_epoch, min(controller_epoch, self.controller_epoch), *rest)


def _forgets_with_the_first(done_by: Do, self: Any, broker: int, position: int, serves: Any) -> None:
    for each in self._known.values():
        if each.position <= position:
            each.holders.clear()


def _ends_at_once(ended: Do, part: PartitionImage, least: int) -> PartitionImage | None:
    target = reassignment.target_of(part)
    return ended(part._replace(isr=(*part.isr, *(one for one in target if one not in part.isr))), least)


def _takes_all_away(without: Do, overrides: Any, _: Any) -> Any:
    return without(overrides, lambda *_: True)


def _stays_led(with_replicas: Do, part: PartitionImage, replicas: tuple[int, ...], *rest: Any) -> Any:
    """As if a broker that is dropped could go on in its leader epoch."""
    after = with_replicas(part, replicas, *rest)
    return after and after._replace(leader_epoch=part.leader_epoch)


def move(name: str) -> Callable[[], None]:
    return lambda: reassignment.test_reassignment(next(one for one in reassignment.TRANSCRIPTS if one.startswith(name)))


TAKEN_OVER = [
    Instead("moldau.cluster.following:Following._take", _takes_any_controllers),
    Instead("moldau.cluster.controlling.change_stream:ChangeStream.follow", _answers_as_an_older_one),
]
"""Either check alone is enough: the controller's, and the broker's."""

BUGS: dict[str, tuple[Instead | list[Instead], Callable[[], None]]] = {
    "a controller that was replaced changes an ISR": (
        Instead(f"{QUEUE}.begin", _checks_no_epoch), alterations.test_a_zombie_controller_changes_no_isr,
    ),
    "a controller that was replaced makes a topic": (
        Instead(f"{QUEUE}.begin", _checks_no_epoch),
        changes.test_a_controller_that_was_replaced_and_has_not_heard_of_it_changes_nothing,
    ),
    "a zombie controller writes": (
        Instead(f"{QUEUE}.begin", _checks_no_epoch),
        lambda: transcripts.test_one_controller_at_a_time_is_obeyed(transcripts.ZOMBIE),
    ),
    "a write whose outcome is unknown is tried again": (
        Instead(f"{QUEUE}.commit", _tries_again),
        acting.test_a_controller_whose_write_had_no_answer_resigns_reads_everything_and_is_elected_again,
    ),
    "eligible leaders stay when the ISR is large enough": (
        Instead("moldau.cluster.state.eligibility:with_isr", _keeps_eligible),
        eligibility.test_eligible_leaders_last_only_while_the_watermark_stands_still,
    ),
    "changes of an older controller are taken over": (
        TAKEN_OVER,
        following.test_an_answer_of_a_controller_that_was_replaced_is_dropped,
    ),
    "a deleted topic is forgotten by the first broker": (
        Instead("moldau.cluster.state.deletions:Deletions.done_by", _forgets_with_the_first),
        acting.test_deleted_topics_are_remembered_until_every_broker_that_had_them_acts_by_it,
    ),
    "a leader needs no lease": (
        Instead("moldau.cluster.state.lease:Lease.may_lead", returns(True)),
        lease.test_without_the_lease_a_broker_leads_while_an_in_sync_follower_asks,
    ),
    "a move ends before its new replicas are in sync": (
        Instead(f"{REASSIGNMENT}:ended", _ends_at_once), move("a dead broker in the target"),
    ),
    "a replica that a move drops goes on in its leader epoch": (
        Instead(f"{REASSIGNMENT}:_with_replicas", _stays_led), move("a target replica that leads"),
    ),
    "a cancelled move keeps the replicas that it added": (
        Instead(f"{REASSIGNMENT}:originals_of", lambda _, part: part.replicas), move("a cancelled move, as Kafka"),
    ),
    "a move takes the throttles of an operator away": (
        Instead(f"{THROTTLES}:_without", _takes_all_away),
        lambda: throttles.test_what_an_operator_has_listed_stays("0:1,0:2", "0:2"),
    ),
    "the rates go though another topic is throttled": (
        Instead(f"{THROTTLES}:_listing", returns([])), throttles.test_rates_stay_while_another_topic_lists_replicas,
    ),
    "the lists of throttled replicas go before the rates": (
        Instead(f"{THROTTLES}:_lists_gone", lambda of, *change: of(*change)[::-1]),
        throttles.test_what_the_tool_has_listed_goes_with_its_move_and_the_rates_with_the_last_list,
    ),
    "rates for moves go while one is under way": (
        Instead(f"{THROTTLES}:_moves", returns(False)),
        throttles.test_rates_of_moves_are_left_over_when_none_is_under_way_and_those_for_all_brokers_stay,
    ),
}  # fmt: skip


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert_found(*BUGS[name])
