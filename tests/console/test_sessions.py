"""Sessions end: when nobody uses them, whatever an open page asks for by itself; at logout, with their streams."""

import asyncio
from collections.abc import Iterator
from typing import cast
from urllib.request import Request, urlopen

import pytest

from harness.patience import stretched, wait_until
from moldau.console import server
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.server import ConsoleServer
from moldau.console.settings import ConsoleSettings
from moldau.console.web import sessions
from moldau.console.web.paths import own_path, path_of
from moldau.console.web.sessions import AGE_S, IDLE_S, ConsoleSessions
from moldau.http.in_thread import ServerThread
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser
from tests.console.test_guarded import logged_in

PORT = 8090


class ClosedAdmin:
    """Clients that know whether they were closed."""

    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


def test_what_a_page_asks_for_by_itself_does_not_keep_a_session() -> None:
    async def scenario() -> None:
        now_s = 0.0
        kept, admin = ConsoleSessions(None, lambda: now_s, PORT, secure=False), ClosedAdmin()
        cookie = kept.cookie(await kept.log_in("ann", cast(ClusterAdmin, admin)))
        now_s = IDLE_S - 1
        assert kept.of(cookie, is_used=False).user == "ann"
        now_s = IDLE_S + 1
        assert kept.of(cookie, is_used=False).user == ""
        await kept.end_old()
        assert admin.is_closed

    asyncio.run(scenario())


def test_a_session_in_use_lasts_until_it_is_old_and_ends_with_its_streams() -> None:
    async def scenario() -> None:
        now_s = 0.0
        kept, admin = ConsoleSessions(None, lambda: now_s, PORT, secure=False), ClosedAdmin()
        session = await kept.log_in("ann", cast(ClusterAdmin, admin))
        session.streams.add(stream := asyncio.ensure_future(asyncio.sleep(1_000)))
        while now_s < AGE_S - IDLE_S:
            now_s += IDLE_S - 1
            await kept.end_old()
            assert kept.of(kept.cookie(session)).user == "ann" and not admin.is_closed
        now_s = AGE_S
        await kept.end_old()
        assert kept.of(kept.cookie(session)).user == "" and admin.is_closed
        await asyncio.wait([stream])
        assert stream.cancelled()

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[str, ConsoleServer]]:
    """A console of a broker with logins, and its server."""
    with Broker({"super.users": "User:ann"}, users={"ann": "ann-secret"}, acls=[]) as broker:
        broker.create_topic("read", 1)
        console = ConsoleServer(ConsoleSettings(broker.client_settings("ann"), "127.0.0.1", 0))
        running = ServerThread(console, "console")
        running.start()
        try:
            yield running.addresses[0], console
        finally:
            running.stop()


def test_a_live_tail_ends_at_the_logout(guarded: tuple[str, ConsoleServer]) -> None:
    url, console = guarded
    with logged_in(url, "ann", "ann-secret") as browser:
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        question = Request(f"{url}/topics/read/tail", headers={"Cookie": cookies})
        with urlopen(question, timeout=stretched(30)) as stream:
            assert stream.readline() == b"event: progress\n" and console.streams == 1
            browser.get("/new-topic")
            browser.post("/logout", {})
            stream.read()  # to its end
        assert wait_until(lambda: console.streams == 0)


def test_sessions_that_nobody_uses_are_ended_although_nobody_comes(
    guarded: tuple[str, ConsoleServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passwords do not stay in memory until the next login."""
    monkeypatch.setattr(server, "EXPIRE_EACH_S", 0.01)
    console = ConsoleServer(guarded[1]._console.settings)
    running = ServerThread(console, "console")
    running.start()
    try:
        with logged_in(running.addresses[0], "ann", "ann-secret"):
            assert console._sessions._logged_in
            monkeypatch.setattr(sessions, "IDLE_S", 0.0)
            assert wait_until(lambda: not console._sessions._logged_in)
    finally:
        running.stop()


def test_a_login_leads_to_the_page_that_was_asked_for(guarded: tuple[str, ConsoleServer]) -> None:
    url, _ = guarded
    wanted = "/topics/read/messages?value=a%26b&start=oldest"
    with ScreenlessBrowser(url) as browser:
        browser.get(wanted)
        page = browser.post("/login", {"user": "ann", "password": "ann-secret", "to": wanted})
        assert page.status == 200 and 'name="value" value="a&amp;b"' in page.html
    with ScreenlessBrowser(url) as browser:
        assert f'name="to" value="{wanted.replace("&", "&amp;")}"' in browser.get(wanted).html
        part = browser.get("/topic-rows", HX_Request="true", Referer=f"{url}/topics?q=x")
        assert part.status == 401 and part.headers["hx-redirect"] == "/login?to=%2Ftopics%3Fq%3Dx"
        elsewhere = {"user": "ann", "password": "ann-secret", "to": "//evil.example/"}
        assert browser.post("/login", elsewhere, follows=False).headers["location"] == "/"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/topics?q=a", "/topics?q=a"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("/\t/evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\nSet-Cookie: a=b", "/"),
        ("/ž", "/"),
        ("", "/"),
        ("/" + "x" * 10_000, "/"),
    ],
)
def test_a_login_leads_nowhere_but_to_this_console(target: str, path: str) -> None:
    assert own_path(target) == path


def test_the_path_of_an_address_has_its_query() -> None:
    assert path_of("http://h:1/topics?q=1#x") == "/topics?q=1" and path_of("http://h/topics") == "/topics"
    assert path_of("http://[") == ""
