"""Who is let in: foreign pages, forged hosts, forms without a token, users of the broker, a read-only console."""

import re
from collections.abc import Iterator

import pytest

from moldau import Admin, TopicPartition
from moldau.admin import Acl
from moldau.console.settings import ConsoleSettings
from moldau.console.web.guards import host_name
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served

NEW = {"name": "guarded", "partitions": "1"}


def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline(browser: ScreenlessBrowser) -> None:
    for path in ("/", "/topics", "/groups", "/brokers", "/new-topic", "/nowhere"):
        page = browser.get(path)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert page.headers["x-content-type-options"] == "nosniff" and page.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?! src=\"/assets/)|<style|\bstyle=|\son\w+=|javascript:", page.html)
        assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", page.html)


def test_assets_are_kept_under_names_with_their_hash(browser: ScreenlessBrowser) -> None:
    paths = re.findall(r'(?:src|href)="(/assets/[^"]+)"', browser.get("/").html)
    assert len(paths) == 7
    for path in paths:
        asset = browser.get(path)
        assert asset.status == 200 and "immutable" in asset.headers["cache-control"]
    assert browser.get("/assets/../settings.py").status == 404
    assert browser.get("/assets/%2e%2e%2fsettings.py").status == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("evil.example:8090", 421),
        ("localhost.evil.example", 421),
        ("", 421),
        ("[", 421),
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8090", 200),
    ],
)
def test_a_host_is_a_known_name_or_an_address(browser: ScreenlessBrowser, host: str, status: int) -> None:
    """A page of another site whose name resolves to this console (DNS rebinding) has its own name in Host."""
    assert browser.get("/", Host=host).status == status


def test_the_name_in_a_host_header_has_no_port_and_no_brackets() -> None:
    assert host_name("[::1]:80") == "::1" and host_name("a.b.:1") == "a.b"


def test_a_change_needs_the_token_and_the_origin_of_its_page(browser: ScreenlessBrowser) -> None:
    assert browser.post("/new-topic", {**NEW, "csrf": ""}).status == 403
    assert browser.post("/new-topic", {**NEW, "csrf": "0" * 64}).status == 403
    assert browser.post("/new-topic", NEW, Origin="http://evil.example").status == 403
    assert browser.post("/new-topic", NEW, Origin="null").status == 403
    assert browser.post("/new-topic", NEW, Sec_Fetch_Site="cross-site").status == 403
    assert browser.get("/topics/guarded").status == 404
    assert browser.post("/new-topic", NEW, Origin=browser.url, Sec_Fetch_Site="same-origin").status == 200


def test_a_token_is_that_of_one_session(console_url: str, browser: ScreenlessBrowser) -> None:
    with ScreenlessBrowser(console_url) as other:
        other.get("/new-topic")
        assert other.token != browser.token
        assert other.post("/new-topic", {**NEW, "csrf": browser.token}).status == 403


def test_forms_are_bounded(browser: ScreenlessBrowser) -> None:
    assert browser.post("/new-topic", {"name": "x" * (3 << 20)}).status == 413
    assert browser.post("/new-topic", {f"f{number}": "" for number in range(200)}).status == 400
    assert browser.get("/topics?" + "&".join(f"f{number}=" for number in range(200))).status == 400


def test_a_read_only_console_changes_nothing_and_shows_no_forms(broker: Broker) -> None:
    broker.create_topic("kept", 1)
    for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, read_only=True)):
        with ScreenlessBrowser(url) as browser:
            pages = ("/topics", "/topics/kept", "/topics/kept/settings", "/topics/kept/messages", "/groups", "/quotas")
            for path in (*pages, "/acls", "/transactions", "/hanging?topic=kept", "/moves", "/mirrors", "/schemas"):
                page = browser.get(path)
                assert page.status == 200 and '<form method="post"' not in page.html, path
                assert "/produce" not in page.html and "/new-topic" not in page.html, path
            for path in ("/new-topic", "/topics/kept/produce"):
                page = browser.get(path)
                assert page.status == 403 and "read-only" in page.text and '<form method="post"' not in page.html
            assert "read-only" in browser.get("/").text
            refused = browser.post("/topics/kept/delete", {"confirm": "kept"})
            assert refused.status == 403 and "read-only" in refused.text
            assert browser.get("/topics/kept").status == 200
            with Admin(broker.address) as admin:
                admin.alter_group_offsets("keeps", {TopicPartition("kept", 0): 0})
                for path in ("/groups/keeps", "/brokers/1"):
                    assert '<form method="post"' not in browser.get(path).html
                assert browser.get("/groups/keeps/delete-offsets?topic=kept").status == 403
                path, form = "/groups/keeps/delete-offsets", {"topic": "kept", "confirm": "kept"}
                assert browser.post(path, form).status == 403 and admin.group_offsets("keeps")


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A console of a broker where `ann` may describe one topic, and `admin` everything."""
    acls = [Acl("topic", "anns", "User:ann", "describe"), Acl("group", "anns", "User:ann", "read")]
    users = {"admin": "admin-secret", "ann": "ann-secret"}
    with Broker({"super.users": "User:admin"}, users=users, acls=acls) as broker:
        for topic in ("anns", "others"):
            broker.create_topic(topic, 1)
        client = {**broker.client_settings("admin"), "sasl.password": "nobody uses this"}
        yield from served(ConsoleSettings(client, "127.0.0.1", 0))


def logged_in(url: str, user: str, password: str) -> ScreenlessBrowser:
    browser = ScreenlessBrowser(url)
    browser.get("/")
    browser.post("/login", {"user": user, "password": password})
    return browser


def test_nothing_is_shown_before_the_login(guarded: str) -> None:
    with ScreenlessBrowser(guarded) as browser:
        for path in ("/", "/topics", "/topics/anns", "/brokers/1"):
            assert "Log in" in browser.get(path).text and "anns" not in browser.get(path).text
        fragment = browser.get("/topic-rows", HX_Request="true")
        assert fragment.status == 401 and fragment.headers["hx-redirect"] == "/login"
        assert "anns" not in browser.post("/new-topic", NEW).text


def test_users_are_those_of_the_broker(guarded: str) -> None:
    with logged_in(guarded, "admin", "wrong") as browser:
        assert browser.seen.status == 401 and "does not know this user" in browser.seen.text
        assert "Log in" in browser.get("/topics").text
    with logged_in(guarded, "admin", "admin-secret") as browser:
        assert browser.seen.status == 200 and "admin" in browser.seen.text
        assert "others" in browser.get("/topics").text
        before = dict(browser.cookies)
        assert "Log in" in browser.post("/logout", {}).text
        browser.cookies = before
        assert "Log in" in browser.get("/topics").text


def test_a_user_sees_what_the_broker_shows(guarded: str) -> None:
    with logged_in(guarded, "ann", "ann-secret") as browser:
        topics = browser.get("/topics").text
        assert "anns" in topics and "others" not in topics
        assert "anns" in browser.get("/topic-rows", HX_Request="true").text
        assert browser.get("/topics/others").status in (403, 404)
        denied = browser.post("/new-topic", NEW)
        assert denied.status == 400 and "uthoriz" in denied.text


def test_a_login_starts_a_new_session_that_no_script_reads(guarded: str) -> None:
    with ScreenlessBrowser(guarded) as browser:
        browser.get("/login")
        before = dict(browser.cookies)
        seen = browser.post("/login", {"user": "ann", "password": "ann-secret"}, follows=False)
        assert browser.cookies != before
        assert "HttpOnly" in seen.headers["set-cookie"] and "SameSite=Lax" in seen.headers["set-cookie"]
