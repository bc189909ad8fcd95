"""Busy polling: the loop stays awake after requests that follow each other closely, and only then."""

from collections.abc import Callable

from moldau.net.busy_polling import BusyPolling

WINDOW_S = 0.5


class Turning:
    """A loop that turns when it is told to, and the time."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.ready: list[Callable[[], None]] = []
        self.polling = BusyPolling(self, WINDOW_S, lambda: self.now_s)  # type: ignore[arg-type]

    def call_soon(self, work: Callable[[], None]) -> None:
        self.ready.append(work)

    def request(self, after_s: float) -> None:
        self.now_s += after_s
        if self.now_s < self.polling.follows_until:
            self.polling.stay_awake()
        self.polling.follows_until = self.now_s + WINDOW_S

    def turns_until_it_sleeps(self, each_s: float) -> int:
        turns = 0
        while self.ready:
            self.ready.pop()()
            self.now_s += each_s
            turns += 1
        return turns


def test_after_a_request_that_came_soon_after_another_the_loop_stays_awake_for_the_window():
    turning = Turning()
    turning.request(after_s=0)
    turning.request(after_s=0.1)
    assert turning.turns_until_it_sleeps(each_s=0.125) == 5


def test_requests_that_are_far_apart_never_keep_the_loop_awake():
    turning = Turning()
    for _ in range(10):
        turning.request(after_s=WINDOW_S)
        assert not turning.ready


def test_however_many_requests_there_are_the_loop_is_asked_once_a_turn():
    turning = Turning()
    for _ in range(10):
        turning.request(after_s=0.01)
    assert len(turning.ready) == 1
