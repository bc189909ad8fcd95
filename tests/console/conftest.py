"""One broker and one console for the tests of a module, and a browser that has seen its first page."""

from collections.abc import Iterator

import pytest

from harness.patience import stretched
from moldau.console.asking import group_questions, keeping, sharing_admin
from moldau.console.server import ConsoleServer
from moldau.console.settings import ConsoleSettings
from moldau.http.in_thread import ServerThread
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are asked for anew each time: a test's other client has just changed them. No broker hangs: one that is
    slow on a busy machine is waited for."""
    monkeypatch.setattr(sharing_admin, "ANSWER_S", stretched(60))
    monkeypatch.setattr(sharing_admin, "AGAIN_S", stretched(60))
    monkeypatch.setattr(group_questions, "WAITING_S", stretched(60))
    monkeypatch.setattr(keeping, "KEPT_S", 0.0)
    monkeypatch.setattr(keeping, "READERS_KEPT_S", 0.0)
    monkeypatch.setattr(keeping, "KEPT_TIMES", 0)
    monkeypatch.setattr(keeping, "ROWS_KEPT_S", 0.0)
    monkeypatch.setattr(keeping, "PULSE_KEPT_S", 0.0)
    monkeypatch.setattr(keeping, "ROWS_TIMES", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


@pytest.fixture(scope="module")
def console_url(broker: Broker) -> Iterator[str]:
    yield from served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0))


@pytest.fixture
def browser(console_url: str) -> Iterator[ScreenlessBrowser]:
    with ScreenlessBrowser(console_url) as made:
        made.get("/new-topic")
        yield made


def served(settings: ConsoleSettings) -> Iterator[str]:
    """Run a console; yields its address."""
    running = ServerThread(ConsoleServer(settings), "console")
    running.start()
    try:
        yield running.addresses[0]
    finally:
        running.stop()
