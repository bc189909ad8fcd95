"""Attacks on a console: hostile records and names, browsers that do not read, too many tabs, guessed passwords, a
broker that goes away."""

import asyncio
import json
import socket
import threading
from contextlib import suppress
from http.client import HTTPException
from typing import cast
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import pytest

from harness.patience import stretched, wait_until
from moldau import Producer
from moldau.console import context
from moldau.console.asking import sharing_admin
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.pages import login, messages
from moldau.console.pages.record_rows import content_of
from moldau.console.search import scanning
from moldau.console.server import ConsoleServer
from moldau.console.settings import ConsoleSettings
from moldau.console.web.attempts import FORGOTTEN_S, FREE, KNOWN_MAX, LONGEST_S, LoginAttempts
from moldau.console.web.refusing import PageRefusal
from moldau.console.web.sessions import OF_A_USER_MAX, ConsoleSessions
from moldau.console.web.slots import BUSY, StreamSlots
from moldau.http import bounded
from moldau.http.in_thread import ServerThread
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served
from tests.console.test_messages import events, rows

SCRIPT = "<script>alert(1)</script>"
SOME_HEADERS = 20_000


@pytest.fixture(scope="module")
def hostile(broker: Broker) -> str:
    """Records that try to be pages, to be large when they are shown, and to be no text."""
    broker.create_topic("hostile", 1)
    with Producer(broker.address) as producer:
        producer.send("hostile", SCRIPT, SCRIPT, headers=[(SCRIPT, SCRIPT.encode())])
        producer.send("hostile", b"\xff\xfe\0" * 1_000, b"\0\r\ndata: forged\r\nevent: done\r\n")
        producer.send("hostile", b"many", headers=[("h", b"%d" % number) for number in range(SOME_HEADERS)])
        producer.send("hostile", "[" * 900 + "1," * 50_000 + "1" + "]" * 900)
        producer.send("hostile", "x" * 900_000)
    return "hostile"


def test_records_are_text_and_never_page_or_event(console_url: str, hostile: str) -> None:
    stream = events(console_url, f"/topics/{hostile}/search?start=oldest")
    assert [name for name, _ in stream][-1] == "done" and {name for name, _ in stream} == {"progress", "rows", "done"}
    shown = rows(stream)
    assert shown.count("<tr>") == 5 and SCRIPT not in shown and "&lt;script&gt;" in shown
    assert len(shown) < 20_000, "a row is short, whatever the record has"
    assert f"{SOME_HEADERS - 4} more" in shown


def test_a_record_of_any_kind_has_a_page_of_bounded_size(browser: ScreenlessBrowser, hostile: str) -> None:
    pages = [browser.get(f"/topics/{hostile}/records/0/{offset}") for offset in range(5)]
    assert [page.status for page in pages] == [200] * 5
    assert all(SCRIPT not in page.html and len(page.html) < 1_500_000 for page in pages)
    assert "more; the export has all" in pages[2].text and "only the beginning" in pages[4].text
    assert "ff fe 00" in pages[1].text


def test_a_batch_that_would_take_all_memory_is_left_out_with_a_sentence(
    broker: Broker, console_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "INFLATED_MAX", 100_000)
    broker.create_topic("bombs", 2)
    with Producer(broker.address, compression_type="zstd", linger_ms=0) as producer:
        for partition, value in ((0, b"before"), (0, bytes(300_000)), (0, b"behind"), (1, b"beside")):
            producer.send("bombs", value, partition=partition).result()
    stream = events(console_url, "/topics/bombs/search?start=oldest")
    (told,) = [json.loads(data) for name, data in stream if name == "damaged"]
    assert told["sentence"].startswith("offset 1 of partition 0") and "more than 100000 bytes" in told["sentence"]
    assert all(found in rows(stream) for found in ("before", "behind", "beside"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":1.10,"a":1e400,"n":12345678901234567890.123}',
         '{\n  "a": 1.10,\n  "a": 1e400,\n  "n": 12345678901234567890.123\n}'),
        ('[ {} , [] , [ 1,true ] ,null ]', '[\n  {},\n  [],\n  [\n    1,\n    true\n  ],\n  null\n]'),
        ('{"\\u017e\\n": "{\\"[,:]\\"}"}', '{\n  "ž\\n": "{\\"[,:]\\"}"\n}'),
        ('["\\ud83d", "\\ud83d\\ude00"]', '[\n  "\\ud83d",\n  "😀"\n]'),
        ("[" + "9" * 5_000 + "]", "[\n  " + "9" * 5_000 + "\n]"),
    ],
)  # fmt: skip
def test_json_is_shown_as_it_is_written(text: str, shown: str) -> None:
    """Numbers are not rounded, and no member is dropped: what differs from the record is the space between."""
    content = content_of(text.encode())
    assert (content.kind, content.text) == ("json", shown)


@pytest.mark.parametrize("text", ['{"a":1,}', '{"a" 1}', "{a: 1}", "[1}", '["a\nb"]', "{", '{"a":1} x'])
def test_what_is_no_json_is_shown_as_it_is(text: str) -> None:
    assert content_of(text.encode()) == (text, "text", len(text), False)


def test_json_is_indented_unless_that_makes_it_long() -> None:
    assert content_of(b'{"a":[1]}').text == '{\n  "a": [\n    1\n  ]\n}'
    bomb = b"[" * 900 + b"1," * 50_000 + b"1" + b"]" * 900
    assert content_of(bomb) == (bomb.decode(), "text", len(bomb), False)


@pytest.mark.parametrize("name", ["__proto__", "...", "-", "constructor", "a" * 249])
def test_any_name_of_a_topic_has_its_pages(browser: ScreenlessBrowser, broker: Broker, name: str) -> None:
    broker.create_topic(name, 1)
    assert name in browser.get(f"/topics?q={quote(name)}").text
    marked = f"~{name}" if name.startswith((".", "~")) else name
    for part in ("", "/messages", "/groups", "/settings", "/produce"):
        page = browser.get(f"/topics/{marked}{part}")
        assert page.status == 200 and name in page.text, part
    with urlopen(f"{browser.url}/topics/{marked}/export", timeout=stretched(30)) as file:
        assert file.headers["content-disposition"] == f'attachment; filename="{name[:200]}.jsonl"'


def searching() -> int:
    """The threads of searches and exports that have not ended."""
    return sum(thread.name.startswith("moldau-console-search") for thread in threading.enumerate())


@pytest.mark.parametrize("kind", ["tail", "search", "export"])
def test_a_question_for_the_head_of_a_stream_leaves_nothing_open(console_url: str, hostile: str, kind: str) -> None:
    question = Request(f"{console_url}/topics/{hostile}/{kind}", method="HEAD")
    with urlopen(question, timeout=stretched(30)) as answer:
        assert answer.status == 200 and answer.read() == b""
    assert wait_until(lambda: not searching())


def test_an_export_that_gets_no_place_after_all_leaves_nothing_open(
    console_url: str, hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another search has taken the last place since it was asked for."""
    monkeypatch.setattr(StreamSlots, "refuse_when_full", lambda _: None)

    def full(_: object) -> None:
        raise PageRefusal(BUSY, "none is left")

    monkeypatch.setattr(StreamSlots, "taken", full)
    with pytest.raises(HTTPException), urlopen(f"{console_url}/topics/{hostile}/export") as file:
        file.read()
    assert wait_until(lambda: not searching())


def test_the_size_of_a_value_is_that_of_all_of_it(console_url: str, hostile: str, broker: Broker) -> None:
    """A row has only its beginning."""
    broker.create_topic("blobs", 1)
    with Producer(broker.address) as producer:
        producer.send("blobs", b"\xff" * 123_456, b"\xfe" * 3_000).result()
    shown = rows(events(console_url, "/topics/blobs/search"))
    assert "123,456 bytes" in shown and "3,000 bytes" in shown and "2,000 bytes" not in shown


def test_a_form_has_what_a_record_has_or_says_why_not(broker: Broker, browser: ScreenlessBrowser) -> None:
    broker.create_topic("again", 1)
    odd = [("null", None), ("bytes", b"\xff"), ("empty", b"")]
    with Producer(broker.address) as producer:
        producer.send("again", b"\nbelow an empty line", b"a\r\nb", headers=odd).result()
        producer.send("again", b"x" * 600_000).result()
        producer.send("again", b"x", headers=[("a:b", b"1")]).result()
    page = browser.get("/topics/again/produce?partition=0&offset=0").html
    assert ">\n\nbelow an empty line</textarea>" in page and "null::\nbytes:: /w==\nempty: </textarea>" in page
    assert ">\nYQ0KYg==</textarea>" in page
    large = browser.get("/topics/again/produce?partition=0&offset=1")
    assert large.status == 400 and "600,000 bytes" in large.text and "moldau produce --format json" in large.text
    named = browser.get("/topics/again/produce?partition=0&offset=2")
    assert named.status == 400 and "'a:b'" in named.text


def test_a_form_with_hidden_parts_of_a_record_says_so(broker: Broker, hostile: str) -> None:
    for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, masks=("hostile:value",))):
        with ScreenlessBrowser(url) as browser:
            assert "are hidden" not in browser.get(f"/topics/{hostile}/produce").text
            again = browser.get(f"/topics/{hostile}/produce?partition=0&offset=2")
            assert "are hidden" in again.text and ">\n***</textarea>" in again.html and "many" not in again.text


def test_a_fault_in_a_stream_ends_it_and_is_logged(
    console_url: str, hostile: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> bytes:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(messages, "rows_of", broken)
    with suppress(HTTPException):
        events(console_url, f"/topics/{hostile}/search")
    assert wait_until(lambda: "a fault of ours" in caplog.text)


def test_a_browser_that_does_not_read_loses_its_stream(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "STALL_S", 0.3)
    broker.create_topic("long", 1)
    with Producer(broker.address) as producer:
        for _ in range(3_000):
            producer.send("long", b"x" * 10_000)
    server = ConsoleServer(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0))
    running = ServerThread(server, "console")
    running.start()
    try:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.connect(("127.0.0.1", urlsplit(running.addresses[0]).port))
            slow.sendall(b"GET /topics/long/export HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert slow.recv(8).startswith(b"HTTP/1.1")
            assert wait_until(lambda: server.streams == 0)
    finally:
        running.stop()


def test_live_tails_are_bounded_and_take_no_place_of_searches(
    broker: Broker, hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "TAILS_MAX", 2)
    monkeypatch.setattr(context, "SEARCHES_MAX", 1)
    for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0)):
        tails = [urlopen(f"{url}/topics/{hostile}/tail", timeout=stretched(30)) for _ in range(2)]
        for one in tails:
            assert one.readline() == b"event: progress\n"
        with ScreenlessBrowser(url) as browser:
            assert browser.get(f"/topics/{hostile}/tail").status == 503
        (told,) = events(url, f"/topics/{hostile}/tail", Accept="text/event-stream")
        assert told[0] == "done" and "2 live tails run already" in json.loads(told[1])["sentence"]
        assert rows(events(url, f"/topics/{hostile}/search"))
        for one in tails:
            one.close()


def test_a_broker_that_goes_away_is_a_sentence_and_its_return_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"default.api.timeout.ms": "500", "request.timeout.ms": "500"}
    monkeypatch.setattr(sharing_admin, "CLIENT", {**sharing_admin.CLIENT, **short})
    with Broker() as broker:
        broker.create_topic("stays", 1)
        with Producer(broker.address) as producer:
            producer.send("stays", b"here").result()
        for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0)):
            with ScreenlessBrowser(url) as browser:
                assert browser.get("/topics/stays").status == 200
                broker.kill()
                for path in ("/", "/topics", "/topics/stays", "/groups", "/brokers"):
                    page = browser.get(path)
                    assert page.status in (502, 504) and 'role="alert"' in page.html, (path, page.text)
                (told,) = events(url, "/topics/stays/search", Accept="text/event-stream")
                assert json.loads(told[1])["why"] == "error"
                broker.start()
                for path in ("/", "/topics", "/topics/stays", "/groups", "/brokers"):
                    assert wait_until(lambda path=path: browser.get(path).status == 200), path
                assert "here" in rows(events(url, "/topics/stays/search"))


def test_passwords_cannot_be_guessed_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "FAILED_S", 0.0)
    with Broker(users={"ann": "ann-secret", "bob": "bob-secret"}) as broker:
        for url in served(ConsoleSettings(broker.client_settings("ann"), "127.0.0.1", 0)):
            with ScreenlessBrowser(url) as browser:
                browser.get("/login")
                for _ in range(FREE):
                    assert browser.post("/login", {"user": "ann", "password": "guessed"}).status == 401
                told = browser.post("/login", {"user": "ann", "password": "ann-secret"})
                assert told.status == 429 and "wait 5 s" in told.text
                assert browser.post("/login", {"user": "bob", "password": "bob-secret"}).status == 200


def test_the_wait_after_failed_logins_doubles_and_is_forgotten() -> None:
    attempts, now_s = LoginAttempts(), 1_000.0
    waits = []
    for _ in range(FREE + 8):
        attempts.failed("here", "ann", now_s)
        waits.append(attempts.wait_s("here", "ann", now_s))
    assert waits == [0.0] * (FREE - 1) + [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, LONGEST_S, LONGEST_S, LONGEST_S]
    assert attempts.wait_s("here", "ann", now_s + LONGEST_S) == 0.0
    assert attempts.wait_s("there", "ann", now_s) == 0.0 == attempts.wait_s("here", "bob", now_s)
    attempts.failed("here", "ann", now_s + FORGOTTEN_S + 1)
    assert attempts.wait_s("here", "ann", now_s + FORGOTTEN_S + 1) == 0.0
    for number in range(KNOWN_MAX + 10):
        attempts.failed("here", str(number), now_s)
    assert len(attempts._failed) == KNOWN_MAX
    attempts.succeeded("here", "20")
    assert len(attempts._failed) == KNOWN_MAX - 1


def test_a_user_who_logs_in_often_ends_no_session_of_others() -> None:
    class Closed:
        async def close(self) -> None:
            return

    async def scenario() -> None:
        sessions = ConsoleSessions(None, lambda: 1.0, 8090, secure=False)
        ann = await sessions.log_in("ann", cast(ClusterAdmin, Closed()))
        own = [await sessions.log_in("bob", cast(ClusterAdmin, Closed())) for _ in range(OF_A_USER_MAX * 20)]
        assert [sessions.of(sessions.cookie(one)).user for one in (ann, own[0], own[-1])] == ["ann", "", "bob"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("site", "mode", "kind", "status"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "cors", "empty", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_pages_of_other_sites_start_no_searches(
    browser: ScreenlessBrowser, hostile: str, site: str, mode: str, kind: str, status: int
) -> None:
    sent = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode, "Sec_Fetch_Dest": kind}
    assert browser.get(f"/topics/{hostile}/search?limit=1", **sent).status == status
