"""The pages of the console on a real broker: what they show, what their forms do, and what they say of mistakes."""

import html
import logging
import re
import time

import pytest

from harness.patience import wait_until
from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.console.asking import mirror_question
from moldau.console.pages import group
from moldau.mirror import planning
from moldau.mirror.ends import SETTING
from moldau.mirror.sharing import GROUP
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser


@pytest.fixture(scope="module")
def read(broker: Broker) -> str:
    """A topic of ten records, of which the group `a/b` has read four."""
    broker.create_topic("read", 2)
    with Producer(broker.address) as producer:
        for number in range(10):
            producer.send("read", key=b"k", value=b"%d" % number)
    with Admin(broker.address) as admin:
        (tp,) = [tp for tp, (_, end) in admin.watermarks("read").items() if end]
        admin.alter_group_offsets("a/b", {tp: 4})
    return "read"


def test_the_overview_has_the_brokers_at_once_and_loads_the_counts(browser: ScreenlessBrowser, read: str) -> None:
    page = browser.get("/")
    assert page.status == 200 and "Brokers" in page.text and 'hx-get="/health"' in page.html
    health = browser.get("/health", HX_Request="true").text
    assert "0 without a leader" in health and "0 under-replicated" in health and "topics" in health


def test_a_broker_has_its_disk_its_folders_and_its_settings(browser: ScreenlessBrowser) -> None:
    brokers = browser.get("/brokers")
    assert "controller" in brokers.text
    path = re.findall(r'href="(/brokers/\d+)"', brokers.html)[0]
    page = browser.get(path)
    assert "log.retention.check.interval.ms" in page.text
    assert "Replicas" in browser.get(f"{path}/folders", HX_Request="true").text
    assert browser.get("/brokers/77").status == 404
    assert browser.get("/brokers/x").status == 400


def test_the_list_of_topics_has_groups_and_their_largest_lag(browser: ScreenlessBrowser, read: str) -> None:
    assert read in browser.get("/topics").text
    rows = browser.get("/topic-rows?q=read", HX_Request="true")
    cells = rows.text.split("Lag ")[1].split()
    assert cells[0] == "read" and cells[3] == "10" and cells[-2:] == ["1", "6"], rows.text
    assert "__consumer_offsets" not in browser.get("/topics").text
    assert "__consumer_offsets" in browser.get("/topics?internal=1").text
    assert "a/b" in browser.get("/topics/read/groups").text


def test_a_mirror_says_whose_it_is(browser: ScreenlessBrowser, broker: Broker) -> None:
    broker.create_topic("mirrored", 1)
    assert "mirrors a topic" not in browser.get("/topics/mirrored").text
    with Admin(broker.address) as admin:
        admin.alter_topic_configs("mirrored", {"mirror.source": "far-away-cluster/AAAAAAAAAAAAAAAAAAAAAA"})
        assert "mirrors a topic of the cluster far-away-cluster :" in browser.get("/topics/mirrored").text
        admin.alter_topic_configs("mirrored", {"mirror.source": "failing-over/AAAAAAAAAAAAAAAAAAAAAA"})
    assert "was begun and has not ended" in browser.get("/topics/mirrored").text


def test_mirrors_have_their_workers_and_the_age_of_what_they_have(
    browser: ScreenlessBrowser, broker: Broker, read: str
) -> None:
    broker.create_topic("copied", 2)
    with Producer(broker.address) as producer:
        three_hours_ago_ms = int(time.time() * 1_000) - 3 * 3_600_000
        producer.send("copied", b"x", partition=1, timestamp_ms=three_hours_ago_ms).result()
    with Admin(broker.address) as admin:
        admin.alter_topic_configs("copied", {"mirror.source": "far/AAAAAAAAAAAAAAAAAAAAAA"})
        page = browser.get("/mirrors").text
        assert "far 1 none runs: nothing is copied" in page and re.search(r"copied far 2 1 \S+ \S+ 3.0 h", page), page
        with Consumer(broker.address, group_id="moldau-mirror-far") as consumer:
            consumer.subscribe([read])
            consumer.poll()
            assert wait_until(lambda: "far 1 1 " in browser.get("/mirrors", HX_Request="true").text)
        admin.alter_topic_configs("copied", {"mirror.source": "failing-over/AAAAAAAAAAAAAAAAAAAAAA"})
        assert "copied fail-over not finished" in browser.get("/mirrors").text


def test_the_console_knows_mirrors_by_the_names_that_mirrors_give_themselves() -> None:
    assert mirror_question.MIRROR_SOURCE == SETTING and mirror_question.WORKERS == GROUP
    assert f"{mirror_question.FAILING_OVER}/" == planning.FAILING_OVER


def test_lists_of_groups_have_the_age_of_what_they_have_not_read(
    browser: ScreenlessBrowser, broker: Broker, read: str
) -> None:
    three_hours_ago_ms = int(time.time() * 1_000) - 3 * 3_600_000
    broker.create_topic("aged", 3)
    with Producer(broker.address) as producer:
        for number in range(3):
            producer.send("aged", b"x", partition=number, timestamp_ms=three_hours_ago_ms + number * 60_000)
    with Admin(broker.address) as admin:
        admin.alter_group_offsets("late", {TopicPartition("aged", 1): 0, TopicPartition("aged", 2): 0})
        admin.alter_group_offsets("done", {TopicPartition("aged", 0): 1})
    rows = browser.get("/group-rows", HX_Request="true").text
    assert "aged 2 3.0 h" in rows and "aged 0 0 s" in rows
    assert "late Empty 2 3.0 h" in browser.get("/topics/aged/groups", HX_Request="true").text


def test_deleted_records_do_not_count_when_lists_are_sorted_by_lag(browser: ScreenlessBrowser, broker: Broker) -> None:
    """Partition 0 and its group are furthest behind by offsets, and not by the records that are there."""
    broker.create_topic("trimmed", 2)
    with Producer(broker.address) as producer:
        for number in range(12):
            producer.send("trimmed", b"x", partition=0 if number < 9 else 1).result()
    first, second = TopicPartition("trimmed", 0), TopicPartition("trimmed", 1)
    with Admin(broker.address) as admin:
        admin.alter_group_offsets("trimmed-both", {first: 0, second: 1})
        admin.alter_group_offsets("trimmed-first", {first: 0})
        admin.alter_group_offsets("trimmed-second", {second: 1})
        admin.delete_records({first: 8})
    for sort, partitions in (("-lag", [("1", "2"), ("0", "1")]), ("lag", [("0", "1"), ("1", "2")])):
        page = browser.get(f"/groups/trimmed-both?sort={sort}").text
        rows = re.findall(r"trimmed (\d) [\d,]+ [\d,]+ ([\d,]+) ", page)
        assert rows == partitions, page
    listed = browser.get("/group-rows?q=trimmed-&sort=-lag", HX_Request="true")
    assert re.findall(r'"/groups/trimmed-(\w+)"', listed.html) == ["both", "second", "first"]


def test_a_list_is_shown_in_parts(browser: ScreenlessBrowser, broker: Broker) -> None:
    with Admin(broker.address) as admin:
        admin.create_topics([f"part-{number:03d}" for number in range(60)])
    first, second = browser.get("/topics?q=part-"), browser.get("/topics?q=part-&from=50")
    assert "part-049" in first.text and "part-050" not in first.text and "1–50 of 60" in first.text
    assert "part-050" in second.text and "part-049" not in second.text
    assert "part-050" in browser.get("/topics?q=part-&from=99999").text
    assert browser.get("/topics?from=x").status == 400


def test_a_topic_is_created_changed_expanded_and_deleted(browser: ScreenlessBrowser, broker: Broker) -> None:
    made = browser.post(
        "/new-topic", {"name": "made", "partitions": "3", "replicas": "", "settings": "retention.ms=1000\n"}
    )
    assert made.status == 200 and "was created" in made.text and "3 partitions" in made.text
    assert "retention.ms 1000 topic" in browser.get("/topics/made/settings").text
    changed = browser.post("/topics/made/settings", {"setting": "retention.ms", "value": "7000"})
    assert "retention.ms 7000 topic" in changed.text
    back = browser.post("/topics/made/settings", {"setting": "retention.ms", "reset": "1"})
    assert "retention.ms 604800000" in back.text
    wrong = browser.post("/topics/made/settings", {"setting": "retention.ms", "value": "soon"})
    assert wrong.status == 400 and "retention.ms" in wrong.text
    assert "4 partitions" in browser.post("/topics/made/partitions", {"partitions": "4"}).text
    assert browser.post("/topics/made/partitions", {"partitions": "2"}).status == 400
    assert browser.post("/topics/made/delete", {"confirm": "mad"}).status == 400
    assert browser.post("/topics/made/delete", {"confirm": "made"}).status == 200
    assert browser.get("/topics/made").status == 404


def test_changes_are_logged_with_who_sent_them_and_without_values(
    browser: ScreenlessBrowser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "moldau.console.web.changes")
    browser.post("/new-topic", {"name": "logged", "partitions": "1"})
    browser.post("/topics/logged/settings", {"setting": "retention.ms", "value": "s3cret"})
    browser.post("/topics/logged/produce", {"key_as": "text", "value_as": "text", "value": "s3cret", "key": "s3cret"})
    browser.post("/topics/logged/delete", {"confirm": "logged\n", "name": "a\nb"})
    sent = [record.getMessage().removeprefix("'somebody' at 127.0.0.1 sent ") for record in caplog.records]
    assert sent == [
        "/new-topic {'name': 'logged'}: status 303",
        "/topics/logged/settings {'setting': 'retention.ms'}: status 400",
        "/topics/logged/produce {}: status 200",
        r"/topics/logged/delete {'name': 'a\nb'}: status 400",
    ]


def test_a_wrong_topic_keeps_what_was_typed(browser: ScreenlessBrowser) -> None:
    wrong = browser.post("/new-topic", {"name": "so nicht", "partitions": "2", "settings": "retention.ms=1"})
    assert wrong.status == 400 and 'value="so nicht"' in wrong.html and "retention.ms=1" in wrong.html
    assert browser.post("/new-topic", {"name": "x", "partitions": "-2"}).status == 400


def test_a_group_has_its_lag_and_its_offsets_are_moved_after_they_were_shown(
    browser: ScreenlessBrowser, read: str, broker: Broker
) -> None:
    assert "a/b" in browser.get("/groups").text
    assert " read 6 " in browser.get("/group-rows?q=a/b", HX_Request="true").text
    page = browser.get("/groups/a%2Fb")
    assert page.status == 200 and "Move the offsets" in page.text
    shown = browser.post("/groups/a%2Fb/reset", {"topic": "", "way": "shift", "value": "-3"})
    assert "Nothing is changed yet" in shown.text and " 4 1 -3" in shown.text
    with Admin(broker.address) as admin:
        (at,) = admin.group_offsets("a/b").values()
        assert at.offset == 4
        done = browser.post("/groups/a%2Fb/reset", {"topic": "", "way": "shift", "value": "-3", "execute": "1"})
        assert "were moved" in done.text
        (at,) = admin.group_offsets("a/b").values()
        assert at.offset == 1
        browser.post("/groups/a%2Fb/reset", {"topic": "", "way": "offset", "value": "4", "execute": "1"})


@pytest.mark.parametrize(
    ("way", "value", "says"),
    [
        ("duration", "soon", "ISO 8601 duration"),
        ("time", "later", "ISO 8601 time"),
        ("offset", "-1", "whole number"),
        ("sideways", "", "choose where"),
    ],
)
def test_a_wrong_target_is_a_sentence(browser: ScreenlessBrowser, read: str, way: str, value: str, says: str) -> None:
    wrong = browser.post("/groups/a%2Fb/reset", {"topic": "", "way": way, "value": value, "execute": "1"})
    assert wrong.status == 400 and says in wrong.text


def test_a_group_with_members_keeps_its_offsets(
    browser: ScreenlessBrowser, read: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Consumer(broker.address, group_id="busy", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([read])
        assert next(iter(consumer)).value is not None
        consumer.commit()
        refused = browser.post("/groups/busy/reset", {"topic": read, "way": "earliest", "value": "", "execute": "1"})
        assert refused.status == 400 and "stop them first" in refused.text
        assert "Members" in browser.get("/groups/busy").text
        part = browser.get("/groups/busy", HX_Request="true").text
        assert part.startswith("Stable") and "Members" in part, "a rebalance is seen while the page is open"
        monkeypatch.setattr(group, "MEMBERS_SHOWN", 0)
        assert "1 more member is not shown" in browser.get("/groups/busy").text
        assert re.search(r"busy .*Stable \w+ 1 read", browser.get("/group-rows?q=busy", HX_Request="true").text)
        assert browser.post("/groups/busy/delete", {"confirm": "busy"}).status == 400
    assert browser.post("/groups/busy/delete", {"confirm": "busy"}).status == 200
    assert browser.get("/groups/busy").status == 404


def test_the_offsets_of_one_topic_are_deleted_after_they_were_shown(
    browser: ScreenlessBrowser, read: str, broker: Broker
) -> None:
    old, kept = TopicPartition("given-up", 1), TopicPartition(read, 0)
    broker.create_topic(old.topic, 2)
    with Admin(broker.address) as admin:
        admin.alter_group_offsets("moved on", {old: 0, kept: 1})
        path = "/groups/moved%20on/delete-offsets"
        assert re.findall(r"<option>([\w-]+)</option>", browser.get("/groups/moved%20on").html) == [old.topic, read]
        page = browser.get(f"{path}?topic={old.topic}")
        assert page.status == 200 and "Nothing is changed yet" in page.text and "Delete 1 offset" in page.text
        for typed in ("", "given", read):
            refused = browser.post(path, {"topic": old.topic, "confirm": typed})
            assert refused.status == 400 and "type the name of the topic" in refused.text
        assert browser.post(path, {"topic": "none", "confirm": "none"}).status == 404
        assert browser.post(path, {"topic": old.topic, "confirm": old.topic, "csrf": "0"}).status == 403
        assert admin.group_offsets("moved on").keys() == {old, kept}
        browser.get(f"{path}?topic={old.topic}")
        done = browser.post(path, {"topic": old.topic, "confirm": old.topic})
        assert done.status == 200 and "in that topic were deleted" in done.text and old.topic not in done.text
        assert admin.group_offsets("moved on").keys() == {kept}
        last = browser.post(path, {"topic": read, "confirm": read})
        assert last.status == 200 and "in that topic were deleted" in last.text, "whether or not the group is there"
        assert not admin.group_offsets("moved on")


def test_offsets_of_a_topic_that_a_member_reads_stay(browser: ScreenlessBrowser, read: str, broker: Broker) -> None:
    with Consumer(broker.address, group_id="reading", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([read])
        assert next(iter(consumer)).value is not None
        consumer.commit()
        refused = browser.post("/groups/reading/delete-offsets", {"topic": read, "confirm": read})
        assert refused.status == 400 and f"a member of the group reads {read}" in refused.text
        assert consumer.committed()


@pytest.mark.parametrize("name", ["..", ".", "~", "a/b/c", "<script>alert(1)</script>", "ž %2F?#&\"'", " "])
def test_any_name_of_a_group_is_a_path_and_is_escaped(browser: ScreenlessBrowser, broker: Broker, name: str) -> None:
    broker_topic = f"names-{abs(hash(name))}"
    broker.create_topic(broker_topic, 1)
    with Admin(broker.address) as admin:
        admin.alter_group_offsets(name, {TopicPartition(broker_topic, 0): 0})
    page = browser.get(f"/topics/{broker_topic}/groups")
    assert html.escape(name) in page.html.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    (path,) = {part.split('"')[0] for part in page.html.split('href="')[1:] if part.startswith("/groups/")}
    assert "<script>alert" not in page.html
    detail = browser.get(html.unescape(path))
    assert detail.status == 200 and broker_topic in detail.text


def test_what_does_not_exist_is_a_sentence(browser: ScreenlessBrowser) -> None:
    for path, status in {"/nowhere": 404, "/topics/none": 404, "/groups/none": 404, "/topics/%ff": 400}.items():
        seen = browser.get(path)
        assert seen.status == status and "Traceback" not in seen.text, (path, seen.text)
        assert 'role="alert"' in seen.html
    assert browser.post("/topics", {}).status == 405
    line = browser.get("/topics/none", HX_Request="true")
    assert line.status == 404 and "<html" not in line.html
