"""The world that a hypothesis state machine puts a coordinator into: time passes, the log becomes slow, and catches up
or refuses what it was given. Knows no coordinator; the machine makes its own `stage`."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from moldau.errors import ErrorCode
from tests.coordinators.held_log import HeldLog

REFUSALS = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]


class OnASlowLog(RuleBasedStateMachine):
    stage: HeldLog[Any]

    @rule(seconds=st.integers(1, 40))
    def time_passes(self, seconds: int) -> None:
        self.stage.wait(seconds * 1000)

    @rule()
    def log_becomes_slow(self) -> None:
        self.stage.holding = True

    @precondition(lambda self: self.stage.holding)
    @rule()
    def log_catches_up(self) -> None:
        self.stage.holding = False
        self.stage.commit_held()

    @precondition(lambda self: self.stage.held)
    @rule(error=st.sampled_from(REFUSALS))
    def log_refuses(self, error: ErrorCode) -> None:
        self.stage.refuse_held(error)
