"""A broker whose clients lack rights when a test says so."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moldau.handlers.rights import RIGHTS
from moldau.requests.access import Right
from moldau.requests.gate import Gate
from moldau.requests.requirements import Requirements
from moldau.requests.session import Call
from tests.handlers.living import Living
from tests.handlers.transacting import run
from tests.requests.calling import Denying


class Guard:
    """A rule of the gate that gives connections their authorizer."""

    def __init__(self) -> None:
        self._authorizer: Denying | None = None

    def __call__(self, request: Any, call: Call) -> None:
        call.session.authorizer = self._authorizer

    @contextmanager
    def without(self, *denied: tuple[Right, str]) -> Iterator[Denying]:
        """Meanwhile every client lacks these rights."""
        self._authorizer = denying = Denying(*denied)
        yield denying
        self._authorizer = None


def run_guarded(scenario: Callable[[Living, Guard], Awaitable[None]], folder: Path) -> None:
    """A broker as in `transacting.run`, whose gate judges rights."""
    guard = Guard()
    gate = Gate([guard, Requirements(RIGHTS)])
    run(lambda alive: scenario(alive, guard), folder, gate=gate)
