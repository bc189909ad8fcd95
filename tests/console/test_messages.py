"""Records on a real broker: produced by the form, searched by a stream, followed, exported, masked, decoded."""

import itertools
import json
import threading
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest

from harness.patience import stretched, wait_until
from moldau import Consumer, Producer, TopicPartition
from moldau.console.server import ConsoleServer
from moldau.console.settings import ConsoleSettings
from moldau.http.in_thread import ServerThread
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served

RECORDS = 3_000
Events = list[tuple[str, str]]


@pytest.fixture(scope="module")
def filled(broker: Broker) -> str:
    broker.create_topic("filled", 3, retention_ms=-1)
    with Producer(broker.address) as producer:
        for number in range(RECORDS):
            value = json.dumps({"id": number, "user": {"name": f"<b>{number}</b>"}})
            headers = [("trace", b"t-%d" % number)]
            producer.send("filled", value, f"k{number % 10}", timestamp_ms=1_000 * number, headers=headers)
    return "filled"


def events(url: str, path: str, **headers: str) -> Events:
    """All events of a stream that ends."""
    with urlopen(Request(f"{url}{path}", headers=headers), timeout=stretched(30)) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        return parsed(stream.read().decode())


def parsed(text: str) -> Events:
    found = []
    for block in text.split("\n\n"):
        fields: dict[str, list[str]] = {}
        for line in block.splitlines():
            name, _, value = line.partition(": ")
            fields.setdefault(name, []).append(value)
        if "event" in fields:
            found.append((fields["event"][0], "\n".join(fields.get("data", []))))
    return found


def rows(stream: Events) -> str:
    return "".join(data for name, data in stream if name == "rows")


def test_the_newest_records_are_shown_first(console_url: str, filled: str) -> None:
    stream = events(console_url, f"/topics/{filled}/search?limit=50")
    shown = rows(stream)
    assert shown.count("<tr>") == 50
    places = [shown.index(f"trace</b> t-{number}<") for number in range(RECORDS - 1, RECORDS - 51, -1)]
    assert places == sorted(places)
    done = json.loads(stream[-1][1])
    assert stream[-1][0] == "done" and done["why"] == "limit" and done["scanned"] < RECORDS == done["total"]


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("header=trace:%20t-1234", 1234),
        ("header=t-1234", 1234),
        ("value=%3Cb%3E1234", 1234),
        ("json=$.id%20=%201234", 1234),
        ("regex=1&value=%5C%22id%5C%22:%201234%5Cb".replace("%5C%22", "%22"), 1234),
        ("start=time&at=1970-01-01T00:20:34&key=k4&limit=1", 1234),
    ],
)
def test_one_record_is_found_by_what_it_has(console_url: str, filled: str, query: str, number: int) -> None:
    stream = events(console_url, f"/topics/{filled}/search?{query}")
    shown, done = rows(stream), json.loads(stream[-1][1])
    assert shown.count("<tr>") == 1 == done["found"] and f"t-{number}<" in shown
    assert f"&lt;b&gt;{number}&lt;/b&gt;" in shown and "<b>1234" not in shown


def test_a_search_that_finds_nothing_has_scanned_all(console_url: str, filled: str) -> None:
    stream = events(console_url, f"/topics/{filled}/search?value=nowhere")
    assert json.loads(stream[-1][1]) == {"scanned": RECORDS, "total": RECORDS, "found": 0, "why": "end"}


def test_a_stream_that_broke_goes_on_where_it_was(console_url: str, filled: str) -> None:
    with urlopen(f"{console_url}/topics/{filled}/search?value=nowhere", timeout=stretched(30)) as stream:
        ids = [line[4:] for line in stream.read().decode().splitlines() if line.startswith("id: ")]
    assert ids
    again = events(console_url, f"/topics/{filled}/search?value=nowhere", **{"Last-Event-ID": ids[0]})
    assert json.loads(again[0][1])["scanned"] > 0
    assert json.loads(again[-1][1])["scanned"] == RECORDS


def test_an_empty_topic_answers_at_once(console_url: str, broker: Broker) -> None:
    broker.create_topic("empty", 2)
    assert events(console_url, "/topics/empty/search")[-1][1].endswith('"why": "end"}')


def test_wrong_searches_are_sentences(browser: ScreenlessBrowser, filled: str) -> None:
    page = browser.get(f"/topics/{filled}/messages?value=(&regex=1")
    assert page.status == 400 and "RE2" in page.text and 'value="("' in page.html
    assert browser.get(f"/topics/{filled}/search?value=(&regex=1").status == 400
    assert browser.get(f"/topics/{filled}/search?partition=7").status == 400
    assert browser.get("/topics/none/search").status == 404
    assert browser.get(f"/topics/{filled}/export?format=xls").status == 400


def test_one_record_is_shown_as_a_whole(browser: ScreenlessBrowser, filled: str) -> None:
    page = browser.get(f"/topics/{filled}/records/0/0")
    assert page.status == 200 and '"user": {' in page.text and "trace" in page.text, page.text
    part = browser.get(f"/topics/{filled}/records/0/0", HX_Request="true")
    assert "<html" not in part.html and "Produce again" in part.text
    for path in ("0/999999", "9/0", "0/x", "0/-1"):
        assert browser.get(f"/topics/{filled}/records/{path}").status in (400, 404)


def test_an_export_has_all_hits_in_order(console_url: str, filled: str) -> None:
    with urlopen(f"{console_url}/topics/{filled}/export?key=k4&format=jsonl", timeout=stretched(30)) as file:
        assert file.headers["content-disposition"] == 'attachment; filename="filled.jsonl"'
        lines = [json.loads(line) for line in file]
    assert len(lines) == RECORDS // 10 and {line["key"] for line in lines} == {"k4"}
    with urlopen(f"{console_url}/topics/{filled}/export?key=k4&format=csv", timeout=stretched(30)) as file:
        assert len(file.read().decode().splitlines()) == RECORDS // 10 + 1


def test_a_record_is_produced_shown_and_produced_again(browser: ScreenlessBrowser, broker: Broker) -> None:
    broker.create_topic("typed", 1)
    browser.get("/topics/typed/produce")
    form = {"key": "k", "key_as": "text", "value": "první", "value_as": "text", "headers": "a: 1\nb: 2"}
    sent = browser.post("/topics/typed/produce", form)
    assert sent.status == 200 and "offset 0 of partition 0" in sent.text
    assert "první" in browser.get("/topics/typed/records/0/0").text
    again = browser.get("/topics/typed/produce?partition=0&offset=0")
    assert ">\nprvní</textarea>" in again.html and "a: 1\nb: 2" in again.html
    wrong = browser.post("/topics/typed/produce", {**form, "partition": "9"})
    assert wrong.status == 400 and "první" in wrong.html
    assert browser.post("/topics/typed/produce", {**form, "value_as": "base64", "value": "?"}).status == 400


def test_new_records_are_followed(console_url: str, broker: Broker) -> None:
    """Each record of a burst is shown."""
    broker.create_topic("followed", 2)
    seen: list[str] = []
    with urlopen(f"{console_url}/topics/followed/tail?value=wanted", timeout=stretched(30)) as stream:
        reading = threading.Thread(target=lambda: seen.extend(_lines(stream, 700)), daemon=True)
        reading.start()
        assert wait_until(lambda: seen is not None and reading.is_alive())
        with Producer(broker.address) as producer:
            for number in range(1_400):
                producer.send("followed", f"{'wanted' if number % 2 else 'other'} {number}.")
        reading.join(stretched(30))
        assert len(seen) == 700 and {line.strip() for line in seen} == {f"wanted {n}." for n in range(1, 1_400, 2)}


def _lines(stream: "object", count: int) -> Iterator[str]:
    left = count
    for line in stream:  # type: ignore[attr-defined]
        text = line.decode()
        if "wanted" in text:
            yield text[text.index("wanted") :].partition("<")[0]
            left -= 1
            if not left:
                return


def test_a_search_ends_when_its_tab_is_closed(broker: Broker, filled: str) -> None:
    server = ConsoleServer(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0))
    running = ServerThread(server, "console")
    running.start()
    try:
        for _ in range(21):  # more than may run at once
            with urlopen(f"{running.addresses[0]}/topics/{filled}/tail", timeout=stretched(30)) as stream:
                assert stream.readline() == b"event: progress\n"
        assert wait_until(lambda: server.streams == 0)
    finally:
        running.stop()


def test_a_live_tail_that_begins_while_the_console_stops_ends_at_once(broker: Broker, filled: str) -> None:
    server = ConsoleServer(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0))
    running = ServerThread(server, "console")
    running.start()
    try:
        server._app.end_streams()
        with urlopen(f"{running.addresses[0]}/topics/{filled}/tail", timeout=stretched(30)) as stream:
            assert stream.read().startswith(b"event: progress\n")
        assert wait_until(lambda: server.streams == 0)
    finally:
        running.stop()


def test_records_are_masked_before_they_are_searched(broker: Broker, filled: str) -> None:
    for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, masks=("fill*:$.user.name",))):
        found = rows(events(url, f"/topics/{filled}/search?json=$.id%20=%207"))
        assert "***" in found and "&lt;b&gt;" not in found
        assert not rows(events(url, f"/topics/{filled}/search?value=%3Cb%3E7"))
        with urlopen(f"{url}/topics/{filled}/export?json=$.id%20=%207") as file:
            assert json.loads(json.loads(file.read())["value"])["user"]["name"] == "***"
        with ScreenlessBrowser(url) as browser:
            assert "<b>" not in browser.get(f"/topics/{filled}/records/0/0").text


def test_records_in_protobuf_are_decoded(broker: Broker) -> None:
    from moldau.serializers import ProtobufSerializer, Schema, SchemaRegistry
    from moldau.testing import RunningRegistry

    text = 'syntax = "proto3"; message River { string name = 1; int32 km = 2; }'
    broker.create_topic("streams", 1)
    with RunningRegistry(broker) as running:
        registry = SchemaRegistry(running.url)
        schema = Schema(text, "PROTOBUF")
        with Producer(broker.address, value_serializer=ProtobufSerializer(registry, schema)) as producer:
            producer.send("streams", {"name": "Vltava", "km": 430})
        for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, registry=registry)):
            assert "Vltava" in rows(events(url, "/topics/streams/search?json=$.km%20%3E%20400"))


def test_records_of_a_registry_are_decoded(broker: Broker) -> None:
    from moldau.serializers import AvroDeserializer, AvroSerializer, SchemaRegistry
    from moldau.testing import RunningRegistry

    schema = {"type": "record", "name": "River", "fields": [{"name": "name", "type": "string"}]}
    broker.create_topic("rivers", 1)
    with RunningRegistry(broker) as running:
        registry = SchemaRegistry(running.url)
        with Producer(broker.address, value_serializer=AvroSerializer(registry, schema)) as producer:
            producer.send("rivers", {"name": "Vltava"})
        settings = ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, registry=registry)
        schema_id = registry.version("rivers-value").id
        for url in served(settings):
            found = rows(events(url, "/topics/rivers/search?json=$.name%20=%20Vltava"))
            assert "{&#34;name&#34;: &#34;Vltava&#34;}" in found
            with ScreenlessBrowser(url) as browser:
                page = browser.get("/topics/rivers/records/0/0").text
                assert f"schema #{schema_id}" in page, page
                again = browser.get("/topics/rivers/produce?partition=0&offset=0")
                assert f'name="value_schema" value="#{schema_id}"' in again.html
                form = {"key_as": "null", "value_as": "schema", "value_schema": "", "value": '{"name": "Otava"}'}
                assert "offset 1" in browser.post("/topics/rivers/produce", form).text
                wrong = browser.post("/topics/rivers/produce", {**form, "value": '{"name": 1}'})
                assert wrong.status == 400 and "name is text" in wrong.text
                wrong = browser.post("/topics/rivers/produce", {**form, "key_as": "schema", "key": "1"})
                assert wrong.status == 400 and "rivers-key" in wrong.text
        with Consumer(broker.address, value_deserializer=AvroDeserializer(registry)) as consumer:
            consumer.assign([TopicPartition("rivers", 0)])
            consumer.seek_to_beginning()
            names = [record.value["name"] for record in itertools.islice(consumer, 2)]
        assert names == ["Vltava", "Otava"]


def test_a_console_that_stops_ends_its_streams_and_complains_of_nothing(
    broker: Broker, filled: str, caplog: pytest.LogCaptureFixture
) -> None:
    running = ServerThread(ConsoleServer(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0)), "console")
    running.start()
    with urlopen(f"{running.addresses[0]}/topics/{filled}/tail", timeout=stretched(30)) as stream:
        assert stream.readline() == b"event: progress\n"
        running.stop()
        assert stream.read().startswith(b"data: ")
    assert not caplog.records
