"""Deadlines come out by time, and a moved one comes out once, at its new time."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.deadlines import Deadlines


def test_what_is_due_comes_out_by_time_and_then_in_the_order_of_setting() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key, due in (("late", 30), ("first", 10), ("second", 10)):
        deadlines.set(key, due)
    assert deadlines.next_ms() == 10
    assert [deadlines.take(10), deadlines.take(10), deadlines.take(10)] == ["first", "second", None]
    assert deadlines.next_ms() == 30
    assert len(deadlines) == 1


def test_a_deadline_moved_later_does_not_pass_at_its_old_time() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("m", 10)
    deadlines.set("m", 20)
    assert deadlines.take(15) is None
    assert deadlines.take(20) == "m"
    assert deadlines.take(99) is None


def test_a_thousand_heartbeats_leave_one_entry() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for ms in range(1000):
        deadlines.set("m", ms)
    assert len(deadlines._heap) == 1
    assert deadlines.take(998) is None
    assert deadlines.take(999) == "m"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 50) | st.none() | st.just("take"))))
def test_they_agree_with_a_dictionary_that_is_searched(steps: list[tuple[str, int | str | None]]) -> None:
    deadlines: Deadlines[str] = Deadlines()
    model: dict[str, int] = {}
    now = 0
    for key, what in steps:
        if what == "take":
            now += 10
            taken = deadlines.take(now)
            assert (
                taken is None if not model or min(model.values()) > now else model[taken or ""] == min(model.values())
            )
            model.pop(taken or "", None)
        elif what is None:
            deadlines.cancel(key)
            model.pop(key, None)
        else:
            assert isinstance(what, int)
            deadlines.set(key, now + what)
            model[key] = now + what
        assert deadlines.next_ms() == min(model.values(), default=None)
