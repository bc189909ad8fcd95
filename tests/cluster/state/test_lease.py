"""When a broker may go on as a leader: the lease, and what replaces it."""

from math import inf

import pytest

from moldau.cluster.state.lease import NOT_REGISTERED, Lease

EPOCH = 7
SESSION_S, SILENCE_S = 18.0, 30.0


def lease(store_s: float = 100.0, controller_s: float = 100.0) -> Lease:
    made = Lease(SESSION_S, SILENCE_S)
    made.store_answered(EPOCH, store_s)
    made.controller_answered(controller_s)
    return made


def test_there_is_no_lease_before_store_and_controller_have_answered() -> None:
    one = Lease(SESSION_S, SILENCE_S)
    assert not one.holds(EPOCH, 0) and not one.holds(NOT_REGISTERED, 0)
    one.store_answered(EPOCH, 0)
    assert not one.holds(EPOCH, 0)
    one.controller_answered(0)
    assert one.holds(EPOCH, 0)


@pytest.mark.parametrize(
    ("store_s", "controller_s", "until_s"),
    [(100, 100, 118), (100, 80, 110), (112, 100, 130), (50, 100, 68)],
)
def test_it_holds_until_the_session_or_the_patience_of_the_controller_may_be_over(
    store_s: float, controller_s: float, until_s: float
) -> None:
    one = lease(store_s, controller_s)
    assert one.holds(EPOCH, until_s)
    assert not one.holds(EPOCH, until_s + 0.001)


def test_an_answer_that_comes_late_counts_from_its_question_and_never_shortens_the_lease() -> None:
    one = lease(100, 100)
    one.store_answered(EPOCH, 90)
    one.controller_answered(90)
    assert one.holds(EPOCH, 118)


def test_a_new_session_counts_once_the_image_shows_its_registration() -> None:
    """Between two sessions another broker may have been elected, and the image does not show it yet."""
    one = lease()
    one.store_answered(EPOCH + 1, 101)
    assert not one.holds(EPOCH, 102)
    assert one.holds(EPOCH + 1, 102)


def test_the_time_of_an_earlier_session_does_not_count_for_the_next() -> None:
    one = lease(store_s=100)
    one.store_answered(EPOCH + 1, 90)
    assert one.holds(EPOCH + 1, 108) and not one.holds(EPOCH + 1, 109)


def test_without_the_lease_a_broker_leads_while_an_in_sync_follower_asks() -> None:
    one = lease(store_s=0)
    assert not one.may_lead(EPOCH, 100, inf)
    assert one.may_lead(EPOCH, 100, SESSION_S / 2)
    assert not one.may_lead(EPOCH, 100, SESSION_S / 2 + 0.1)


def test_with_the_lease_a_broker_leads_without_followers() -> None:
    assert lease().may_lead(EPOCH, 118, inf)
    assert not lease().may_lead(EPOCH - 1, 118, inf)


def test_it_holds_for_the_session_that_the_store_has_granted() -> None:
    one = lease()
    one.session_lasts(10)
    assert one.holds(EPOCH, 110)
    assert not one.holds(EPOCH, 110.001)
    assert one.may_lead(EPOCH, 200, 5) and not one.may_lead(EPOCH, 200, 5.001)


@pytest.mark.parametrize(
    ("fetch_s", "followed_s"), [(0.5, 3.0), (0.0, 1.0), (5.0, SESSION_S / 2), (inf, SESSION_S / 2)]
)
def test_followers_stand_in_for_the_lease_for_a_few_waits_and_half_a_session_at_most(
    fetch_s: float, followed_s: float
) -> None:
    one = Lease(SESSION_S, SILENCE_S, fetch_s)
    assert one.may_lead(EPOCH, 0, followed_s)
    assert not one.may_lead(EPOCH, 0, followed_s + 0.001)
