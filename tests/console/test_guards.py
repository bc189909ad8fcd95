"""Which requests the console lets in, asked in process: foreign names, foreign pages, tokens, and read-only consoles.
Where a page would be answered, a browser without a login is led to the login."""

import asyncio
from typing import Any
from urllib.parse import urlencode

import pytest

from moldau.console.app import ConsoleApp
from moldau.console.context import ConsoleContext
from moldau.console.settings import ConsoleSettings
from moldau.console.web.guards import FormTokens
from moldau.console.web.sessions import ConsoleSessions
from moldau.monotonic import monotonic_s

TOKENS, SESSION, PORT = FormTokens(b"secret"), "a-session", 8090
FOREIGN = {"origin": "http://evil.example"}
OF_ANOTHER_SITE = {"sec-fetch-site": "cross-site"}
PICTURE = {**OF_ANOTHER_SITE, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
LINK = {**OF_ANOTHER_SITE, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
OURS = {"origin": "http://localhost:8090", "sec-fetch-site": "same-origin"}
LET_IN, FORBIDDEN, MISDIRECTED = (200, 303), 403, 421


def status(method: str, path: str, headers: dict[str, str], form: dict[str, str], *, read_only: bool = False) -> int:
    """The status of the answer to a request of a browser that is not logged in."""
    settings = ConsoleSettings({}, port=PORT, read_only=read_only)
    context = ConsoleContext(settings, ConsoleSessions(None, monotonic_s, PORT, secure=False), TOKENS, has_logins=True)
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


def test_a_read_only_console_takes_no_change_but_logins() -> None:
    form = {"name": "made", "csrf": TOKENS.of(SESSION)}
    assert status("POST", "/new-topic", OURS, form, read_only=True) == FORBIDDEN
    assert status("GET", "/topics", {}, {}, read_only=True) in LET_IN
    assert status("POST", "/logout", OURS, form, read_only=True) in LET_IN
