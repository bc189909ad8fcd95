"""What a person does with the console in a real Chromium, by the keyboard alone where a step says so.

Run by the Python of an environment that has playwright: `walk.py URL CHROMIUM HEADER FOLDER`. It writes screenshots
into the folder, and one line of JSON for each step; after `lag` it waits for a line on its input. Nothing of ours is
imported.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, TimeoutError, sync_playwright

WAIT_MS = 60_000
TABS_MAX = 80


def say(step: str, **what: Any) -> None:
    print(json.dumps({"step": step, **what}), flush=True)


def tab_to(page: Page, text: str) -> None:
    """Press Tab until the element with this text or name has the focus."""
    script = """() => { const one = document.activeElement;
        return one.name || (one.textContent || "").trim(); }"""
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        if page.evaluate(script) == text:
            return
    raise AssertionError(f"Tab does not reach {text!r}")


def create(page: Page, url: str) -> None:
    page.goto(url)
    while not page.url.endswith("/topics"):  # both keys come within 1.5 s, unless the machine is slow
        page.keyboard.press("g")
        page.keyboard.press("t")
        with contextlib.suppress(TimeoutError):
            page.wait_for_url("**/topics", timeout=5_000)
    tab_to(page, "New topic")
    page.keyboard.press("Enter")
    page.wait_for_url("**/new-topic")
    page.locator("[name=name]:focus").wait_for()
    page.keyboard.type("made-by-keyboard")
    page.keyboard.press("Tab")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    page.get_by_text("The topic was created.").wait_for()
    say("create")


def produce(page: Page) -> None:
    tab_to(page, "Produce")
    page.keyboard.press("Enter")
    page.wait_for_url("**/produce")
    tab_to(page, "value")
    page.keyboard.type('{"river": "Vltava"}')
    page.keyboard.press("Tab")
    page.keyboard.type("trace: by-hand")
    tab_to(page, "Produce")
    page.keyboard.press("Enter")
    page.get_by_text("The record is at").wait_for()
    say("produce", text=page.locator(".note").inner_text())


def search(page: Page, url: str, header: str, shot: Callable[[str], None]) -> None:
    page.goto(f"{url}/topics/many/messages")
    page.wait_for_selector("#results[data-state=ended]")
    page.keyboard.press("/")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type(header)
    began_s = time.monotonic()
    page.keyboard.press("Enter")
    page.wait_for_selector("table.records tbody tr")
    page.wait_for_selector("#results[data-state=ended]", timeout=WAIT_MS)
    took_s = time.monotonic() - began_s
    rows = page.locator("table.records tbody tr").count()
    say("search", rows=rows, seconds=took_s, progress=page.locator("#progress").inner_text())
    shot("messages")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog.record[open]")
    say("record", text=page.locator("dialog.record").inner_text())
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.record:not([open])", state="attached")


ROWS = "table.records tbody tr"
ENDED = "#results[data-state=ended]"
HIDE = """(hidden) => { Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange")); }"""


def keep(page: Page, url: str) -> None:
    """The search that was just made gets a name, and is there again after another page."""
    page.once("dialog", lambda one: one.accept("by trace"))
    with page.expect_navigation():
        page.get_by_role("button", name="Save search").click()
    page.goto(f"{url}/topics/many/messages")
    page.wait_for_selector(ENDED)
    with page.expect_navigation():
        page.select_option("#saved select", label="by trace")
    page.wait_for_selector(ENDED, timeout=WAIT_MS)
    rows, utc = page.locator(ROWS).count(), page.locator(f"{ROWS} time").first.inner_text()
    page.keyboard.press("z")
    local, zone = page.locator(f"{ROWS} time").first.inner_text(), page.locator("#zone").inner_text()
    page.keyboard.press("z")
    page.get_by_role("button", name="Forget").click()
    say("kept", rows=rows, utc=utc, local=local, zone=zone, left=page.locator("#saved option").count())


def zone(page: Page, url: str) -> None:
    """With the browser's zone, a time that was typed is saved with it, and parts that are loaded again are in it."""
    page.goto(f"{url}/topics/many/messages")
    page.wait_for_selector(ENDED)
    page.keyboard.press("z")
    page.select_option("[name=start]", "time")
    page.fill("[name=at]", "2026-11-28T09:00")
    page.once("dialog", lambda one: one.accept("since nine"))
    with page.expect_navigation():
        page.get_by_role("button", name="Save search").click()
    page.wait_for_selector(ENDED, timeout=WAIT_MS)
    saved = page.url
    page.get_by_role("button", name="Forget").click()
    page.goto(f"{url}/mirrors")
    page.evaluate("""() => { document.querySelector("[hx-get]").innerHTML =
        '<time data-ms="0">1970-01-01 00:00:00.000</time>'; }""")
    page.wait_for_function("() => document.querySelector('time').textContent === '1970-01-01 09:00:00.000'")
    page.keyboard.press("z")
    say("zone", saved=saved, utc=page.locator("time").inner_text())


FAILED = {"scanned": 0, "total": 0, "found": 0, "why": "error", "sentence": "no broker answers"}


def away(page: Page, url: str, problems: list[str]) -> None:
    """A search that fails has found out nothing about the topic; a page that is not loaded again says so."""
    before = len(problems)
    stream = f"event: done\ndata: {json.dumps(FAILED)}\n\n"
    page.route("**/topics/many/search?*", lambda one: one.fulfill(content_type="text/event-stream", body=stream))
    page.goto(f"{url}/topics/many/messages")
    page.wait_for_selector(ENDED)
    told, nothing = page.locator("#progress").inner_text(), page.locator("#nothing").is_visible()
    page.unroute("**/topics/many/search?*")
    page.route("**/topic-rows?*", lambda one: one.abort())
    page.goto(f"{url}/topics")
    page.wait_for_selector("#stale")
    stale = page.locator("#stale").inner_text()
    page.unroute("**/topic-rows?*")
    page.evaluate("() => htmx.trigger(document.querySelector('#rows'), 'load')")
    page.wait_for_selector("#stale", state="detached")
    stream = f"retry: 50\nevent: progress\ndata: {json.dumps(FAILED)}\n\n"
    page.route("**/topics/many/tail?*", lambda one: one.fulfill(content_type="text/event-stream", body=stream))
    page.goto(f"{url}/topics/many/messages?tail=1")
    page.get_by_text("are not shown: the connection broke").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Stopped.").wait_for()
    page.unroute("**/topics/many/tail?*")
    del problems[before:]  # the browser has logged what was broken on purpose
    say("away", told=told, nothing=nothing, stale=stale)


def follow(page: Page, url: str) -> None:
    """A live tail in a tab that is hidden for a moment."""
    page.goto(f"{url}/topics/many/messages?tail=1")
    page.get_by_text("0 new records seen").wait_for()
    page.evaluate(HIDE, True)
    page.evaluate(HIDE, False)
    page.get_by_text("this tab was hidden").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Stopped.").wait_for()
    say("followed")


LAGS = (
    "() => [...document.querySelectorAll('.behind, .zero')].map((one) => Number(one.textContent.replaceAll(',', '')))"
)


def watch(page: Page, url: str, shot: Callable[[str], None]) -> None:
    page.goto(f"{url}/groups/readers")
    page.wait_for_selector(".behind")
    shot("group")
    say("lag", lags=page.evaluate(LAGS))
    sys.stdin.readline()
    page.wait_for_function(f"() => ({LAGS})().every((one) => one === 0)", timeout=WAIT_MS)
    say("fell", lags=page.evaluate(LAGS))


def reset(page: Page) -> None:
    page.get_by_role("button", name="Show what would be moved").click()
    page.get_by_text("Nothing is changed yet").wait_for()
    page.get_by_role("button", name="Move ").click()
    page.get_by_text("The offsets of the group were moved.").wait_for()
    page.wait_for_selector(".behind")
    say("reset", lags=page.evaluate(LAGS))


def looks(page: Page, url: str, shot: Callable[[str], None]) -> None:
    colour = "() => getComputedStyle(document.documentElement).backgroundColor"
    page.goto(f"{url}/topics")
    page.wait_for_function("() => !document.querySelector('td.wait')")
    shot("topics")
    before = page.evaluate(colour)
    page.keyboard.press("d")
    after = page.evaluate(colour)
    page.goto(f"{url}/topics/many/messages")
    page.wait_for_selector("#results[data-state=ended]")
    shot("messages-dark")
    say("dark", before=before, after=after, kept=page.evaluate(colour))
    page.keyboard.press("?")
    page.wait_for_selector("dialog#help[open]")
    page.keyboard.press("Escape")


PAGES = (
    "/", "/topics", "/topics/many", "/topics/many/messages", "/topics/many/settings", "/topics/many/produce", "/groups",
    "/groups/readers", "/brokers", "/acls", "/quotas", "/transactions", "/schemas", "/moves",
    "/mirrors",
)  # fmt: skip


def narrow(page: Page, url: str, shot: Callable[[str], None]) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    wide = {}
    for path in PAGES:
        page.goto(url + path)
        page.wait_for_timeout(300)
        width = page.evaluate("() => document.scrollingElement.scrollWidth")
        if width > 360:
            wide[path] = width
    page.goto(f"{url}/topics/many/messages")
    page.wait_for_selector("#results[data-state=ended]")
    shot("narrow")
    say("narrow", wide=wide)


def main(url: str, chromium: str, header: str, folder: str) -> None:
    problems: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light", timezone_id="Asia/Tokyo")
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda one: problems.append(f"{one.type}: {one.text}"))
        page.on("pageerror", lambda one: problems.append(f"error: {one}"))
        page.on("request", lambda one: None if one.url.startswith((url, "data:")) else problems.append(one.url))

        def shot(name: str) -> None:
            page.screenshot(path=f"{folder}/{name}.png")

        page.on("pageerror", lambda one: print(f"error: {one}", file=sys.stderr, flush=True))
        create(page, url)
        produce(page)
        search(page, url, header, shot)
        keep(page, url)
        zone(page, url)
        away(page, url, problems)
        follow(page, url)
        watch(page, url, shot)
        reset(page)
        looks(page, url, shot)
        page.set_viewport_size({"width": 1280, "height": 1560})
        page.goto(url)
        page.wait_for_selector(".uplot")
        page.get_by_text("Requests per second").wait_for()
        page.wait_for_timeout(8_000)
        shot("overview")
        narrow(page, url, shot)
        browser.close()
    say("end", problems=problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
