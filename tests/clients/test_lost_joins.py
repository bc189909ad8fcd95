"""What is done about the lost joins of kafka-python, and only about those."""

from types import SimpleNamespace

import pytest

from tests.clients.drivers.lost_joins import rejoin_if_lost

RUNNING, FINISHED = SimpleNamespace(is_done=False), SimpleNamespace(is_done=True)


class Coordinator:
    def __init__(self, join: object, *, rejoins: bool):
        self._join_task = join
        self.rejoin_needed = rejoins

    def need_rejoin(self) -> bool:
        return self.rejoin_needed

    def request_rejoin(self) -> None:
        self.rejoin_needed = True


@pytest.mark.parametrize(
    ("join", "rejoins", "is_lost"),
    [(FINISHED, False, True), (FINISHED, True, False), (RUNNING, False, False), (None, False, False)],
)
def test_only_a_finished_join_that_no_poll_would_collect_is_done_again(join: object, rejoins: bool, is_lost: bool):
    coordinator = Coordinator(join, rejoins=rejoins)
    assert rejoin_if_lost(SimpleNamespace(_coordinator=coordinator)) == is_lost
    assert coordinator.rejoin_needed == (rejoins or is_lost)
    assert not rejoin_if_lost(SimpleNamespace(_coordinator=SimpleNamespace()))
