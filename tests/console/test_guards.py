"""Which requests the console lets in, asked in process: foreign names, foreign pages, tokens, and read-only consoles.
Where a page would be answered, a browser without a login is led to the login."""

import asyncio
import functools
from typing import Any
from urllib.parse import urlencode

import pytest

from moldau.console.app import ConsoleApp
from moldau.console.context import ConsoleContext
from moldau.console.pages import login
from moldau.console.routes import ROUTES
from moldau.console.settings import ConsoleSettings
from moldau.console.web.guards import FormTokens
from moldau.console.web.sessions import ConsoleSessions
from moldau.errors import MoldauError
from moldau.monotonic import monotonic_s

TOKENS, SESSION, PORT = FormTokens(b"secret"), "a-session", 8090
FOREIGN = {"origin": "http://evil.example"}
OF_ANOTHER_SITE = {"sec-fetch-site": "cross-site"}
OF_ANOTHER_PORT = {"sec-fetch-site": "same-site"}
"""Of another program on this machine, or of a name beside ours."""
PICTURE = {**OF_ANOTHER_SITE, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
LINK = {**OF_ANOTHER_SITE, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
OURS = {"origin": "http://localhost:8090", "sec-fetch-site": "same-origin"}
LET_IN, FORBIDDEN, MISDIRECTED = (200, 303), 403, 421


@functools.cache
def context_of(read_only: bool) -> ConsoleContext:
    """Of a console whose browsers are not logged in."""
    settings = ConsoleSettings({}, port=PORT, read_only=read_only)
    return ConsoleContext(settings, ConsoleSessions(None, monotonic_s, PORT, secure=False), TOKENS, has_logins=True)


def status(method: str, path: str, headers: dict[str, str], form: dict[str, str], *, read_only: bool = False) -> int:
    """The status of the answer to a request of a browser that is not logged in."""
    context = context_of(read_only)
    sent: list[dict[str, Any]] = []
    asked = {"host": "localhost:8090", "cookie": f"moldau-console-{PORT}={SESSION}", **headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": urlencode(form).encode()}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in asked.items()],
    }  # fmt: skip
    asyncio.run(ConsoleApp(context, ["localhost"])(scope, receive, send))
    return sent[0]["status"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, LET_IN),
        (LINK, LET_IN),
        ({"host": "[::1]:8090"}, LET_IN),
        ({"host": "evil.example"}, (MISDIRECTED,)),
        (PICTURE, (FORBIDDEN,)),
        ({**PICTURE, **OF_ANOTHER_PORT}, (FORBIDDEN,)),
        ({**LINK, **OF_ANOTHER_PORT}, LET_IN),
    ],
)
def test_a_page_is_shown_under_our_names_and_not_within_foreign_pages(
    headers: dict[str, str], expected: tuple[int, ...]
) -> None:
    assert status("GET", "/topics", headers, {}) in expected


@pytest.mark.parametrize(
    ("headers", "session", "expected"),
    [
        ({}, SESSION, LET_IN),
        (OURS, SESSION, LET_IN),
        ({}, "another", (FORBIDDEN,)),
        ({}, "", (FORBIDDEN,)),
        (FOREIGN, SESSION, (FORBIDDEN,)),
        ({"origin": "null"}, SESSION, (FORBIDDEN,)),
        (OF_ANOTHER_SITE, SESSION, (FORBIDDEN,)),
    ],
)
def test_a_change_comes_from_a_page_of_ours_with_the_token_of_its_session(
    headers: dict[str, str], session: str, expected: tuple[int, ...]
) -> None:
    form = {"name": "made", "csrf": TOKENS.of(session) if session else ""}
    assert status("POST", "/new-topic", headers, form) in expected


FORMS = [(route.pattern.replace("{}", "1"), route.is_open) for route in ROUTES if route.method == "POST"]


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of a login that is let in asks no broker."""

    async def away(*_: object) -> None:
        raise MoldauError("no broker answers")

    monkeypatch.setattr(login, "_logged_in", away)


@pytest.mark.usefixtures("no_broker")
def test_each_form_needs_the_token_of_its_session_and_a_page_of_ours() -> None:
    assert len(FORMS) > 15
    for path, _ in FORMS:
        assert status("POST", path, OURS, {"csrf": TOKENS.of(SESSION)}) in (*LET_IN, login.BAD_GATEWAY), path
        for token in ("", TOKENS.of("another"), "ž"):
            assert status("POST", path, OURS, {"csrf": token}) == FORBIDDEN, (path, token)
        for headers in (FOREIGN, OF_ANOTHER_SITE, OF_ANOTHER_PORT, {"origin": "null"}):
            assert status("POST", path, headers, {"csrf": TOKENS.of(SESSION)}) == FORBIDDEN, (path, headers)


@pytest.mark.usefixtures("no_broker")
def test_a_read_only_console_takes_no_form_but_those_of_logins() -> None:
    for path, is_open in FORMS:
        answer = status("POST", path, OURS, {"csrf": TOKENS.of(SESSION)}, read_only=True)
        assert (answer != FORBIDDEN) is is_open, path


def test_a_read_only_console_takes_no_change_but_logins() -> None:
    form = {"name": "made", "csrf": TOKENS.of(SESSION)}
    assert status("POST", "/new-topic", OURS, form, read_only=True) == FORBIDDEN
    assert status("GET", "/topics", {}, {}, read_only=True) in LET_IN
    assert status("POST", "/logout", OURS, form, read_only=True) in LET_IN
