"""The pure parts of a search: what is wanted, which rows match, what is hidden, in which order, how it is written."""

import csv
import io
import itertools
import json
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from harness.tiers import examples
from moldau.console.search import scanning
from moldau.console.search.exporting import csv_head, csv_lines, json_lines
from moldau.console.search.masking import HIDDEN, MaskRules
from moldau.console.search.matching import SearchMatcher
from moldau.console.search.outgoing import form_of, record_of
from moldau.console.search.records import ShownRecord, found, readable, shown_bytes
from moldau.console.search.rounds import SearchWindow, count, place_of, ranges_at, rounds
from moldau.console.search.wanted import wanted_by
from moldau.errors import ConfigError
from moldau.records.arrow import SCHEMA

ROWS = [
    (b"k1", b'{"user": {"id": 1}, "text": "Ahoj"}', [("Trace", b"t-1"), ("source", b"web")]),
    (b"k2", b"\xff\xfeAHOJ", [("source", b"batch")]),
    (None, None, []),
    (b"k4", b"plain ahoj \xc5\xbd", [("none", None)]),
]


def batch(rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = ROWS) -> pa.RecordBatch:
    columns = {
        "key": [key for key, _, _ in rows],
        "value": [value for _, value, _ in rows],
        "topic": ["t"] * len(rows),
        "partition": [0] * len(rows),
        "offset": [*range(len(rows))],
        "timestamp": [1_000_000 * number for number in range(len(rows))],
        "timestampType": [0] * len(rows),
        "headers": [[{"key": name, "value": one} for name, one in headers] for _, _, headers in rows],
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def offsets(**fields: str) -> list[int]:
    """The offsets of the rows that these fields of the form find."""
    wanted = wanted_by({name: [text] for name, text in fields.items()})
    whole, rules = batch(), MaskRules([]).of("t")
    columns = readable(whole, rules, None)
    return [one.offset for one in found(whole, columns, SearchMatcher(wanted).hits(*columns))]


@pytest.mark.parametrize(
    ("fields", "hits"),
    [
        ({}, [0, 1, 2, 3]),
        ({"value": "ahoj"}, [0, 1, 3]),
        ({"value": "ahoj", "case": "1"}, [3]),
        ({"value": "A.oj", "regex": "1", "case": "1"}, [0]),
        ({"value": "ž"}, [3]),
        ({"key": "k", "value": "plain"}, [3]),
        ({"header": "t-1"}, [0]),
        ({"header": "trace"}, [0]),
        ({"header": "source: web"}, [0]),
        ({"header": "source: "}, [0, 1]),
        ({"header": "none:"}, [3]),
        ({"header": "web: source"}, []),
        ({"header": "source: ^(web|batch)$", "regex": "1"}, [0, 1]),
        ({"json": "$.user.id = 1"}, [0]),
        ({"json": "$.user.id = 1", "key": "k4"}, []),
    ],
)
def test_rows_match(fields: dict[str, str], hits: list[int]) -> None:
    assert offsets(**fields) == hits


def test_json_with_escapes_is_the_same_json() -> None:
    values = [
        b'{"user": {"name": "Vltava"}}',
        b'{"\\u0075ser": {"name": "Vl\\u0074ava"}}',
        b'{"user": 1}',
        b"\xff",
        None,
    ]
    rows = batch([(None, value, []) for value in values])
    columns = readable(rows, MaskRules([]).of("t"), None)
    hits = SearchMatcher(wanted_by({"json": ["$.user.name = Vltava"]})).hits(*columns)
    assert hits is not None and hits.to_pylist() == [True, True, False, False, False]


@pytest.mark.parametrize(
    "fields",
    [
        {"value": "(", "regex": "1"},
        {"value": "(a{1000}){1000}", "regex": "1"},
        {"value": r"(a)\1", "regex": "1"},
        {"start": "soon"},
        {"start": "offset", "at": "-1"},
        {"start": "time", "at": "noon"},
        {"partition": "a"},
        {"limit": "x"},
        {"limit": "0"},
        {"limit": "1001"},
        {"json": "?"},
        {"value": "x" * 1001},
    ],
)
def test_what_cannot_be_searched_for_is_a_sentence(fields: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        SearchMatcher(wanted_by({name: [text] for name, text in fields.items()}))
    assert "\n" not in str(refused.value)


def test_an_expression_takes_time_that_is_linear_in_the_text() -> None:
    """An engine that goes back would never end here."""
    wanted = wanted_by({"value": ["(a|a)*(a|a)*(a|a)*$x"], "regex": ["1"]})
    rows = batch([(None, b"a" * 100_000, [])])
    assert not any(SearchMatcher(wanted).hits(*readable(rows, MaskRules([]).of("t"), None)).to_pylist())


def test_what_is_hidden_is_neither_shown_nor_found() -> None:
    rules = MaskRules(["t:$.user.id", "t*:header:TRACE", "other:key", "t:key"])
    mask = rules.of("t")
    whole = batch()
    columns = readable(whole, mask, None)
    shown = [*found(whole, columns, None)]
    assert json.loads(shown[0].value or b"") == {"user": {"id": HIDDEN}, "text": "Ahoj"}
    assert shown[1].value == b"*** (not JSON)" and shown[2].value is None
    assert dict(shown[0].headers) == {"Trace": HIDDEN.encode(), "source": b"web"}
    assert [one.key for one in shown] == [b"***", b"***", None, b"***"]
    for fields in (
        {"value": '"id": 1'},
        {"value": '"id":1'},
        {"json": "$.user.id = 1"},
        {"header": "t-1"},
        {"key": "k1"},
    ):
        matcher = SearchMatcher(wanted_by({name: [text] for name, text in fields.items()}))
        hits = matcher.hits(*columns)
        assert hits is not None and not any(hits.to_pylist()), fields
    assert MaskRules(["*:value"]).of("any").masked_value(b"secret") == b"***"
    for wrong in ("t", "t:", ":key", "t:keys", "t:header:", "t:$", "t:$.a = 1"):
        with pytest.raises(ConfigError):
            MaskRules([wrong])


def test_a_search_finds_nothing_that_it_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "read_range", lambda *_: iter([batch()]))
    mask, window = MaskRules(["t:$.user.id", "t*:header:TRACE", "t:key"]).of("t"), SearchWindow(0, 0, len(ROWS))
    for fields, hits in (({"value": '"id":1'}, []), ({"json": "$.user.id = 1"}, []), ({"header": "t-1"}, []),
                         ({"key": "k1"}, []), ({"value": "Ahoj"}, [0]), ({"header": "batch"}, [1])):  # fmt: skip
        wanted = wanted_by({name: [text] for name, text in fields.items()})
        scan = scanning.TopicScan(cast(Any, None), "t", {}, wanted, mask)
        scan._caller = cast(Any, object())
        (step,) = scan._range(window, cast(Any, None), 0)
        assert [one.offset for one in step.hits] == hits, fields


@given(
    some.dictionaries(some.integers(0, 9), some.tuples(some.integers(0, 60_000), some.integers(0, 60_000)), max_size=6),
    some.booleans(),
    some.integers(1, 500),
)
@settings(max_examples=examples(test=30, check=100))
def test_rounds_have_each_offset_once(ranges: dict[int, tuple[int, int]], newest: bool, first: int) -> None:
    left = {number: place for number, place in ranges.items() if place[0] < place[1]}
    searched: dict[int, list[tuple[int, int]]] = {}
    for each in rounds(ranges, newest_first=newest, first=first):
        for number, start, end in each.windows:
            searched.setdefault(number, []).append((start, end))
        assert ranges_at(place_of(each.left), ranges) == each.left or not each.left
    assert searched.keys() == left.keys()
    for number, windows in searched.items():
        assert windows == sorted(windows, reverse=newest)
        in_order = sorted(windows)
        assert (in_order[0][0], in_order[-1][1]) == left[number]
        assert all(a[1] == b[0] for a, b in itertools.pairwise(in_order))
    assert count(ranges) == sum(end - start for windows in searched.values() for start, end in windows)


@pytest.mark.parametrize("place", ["", "x", "0:1", "0:1-", "0:a-b", "0:1-2,", "0:-1-5", "9" * 30 + ":1-2"])
def test_a_place_that_is_none_begins_again(place: str) -> None:
    assert ranges_at(place, {0: (0, 10)}) == {0: (0, 10)}
    assert ranges_at("0:3-99,7:1-2", {0: (0, 10)}) == {0: (3, 10)}


RECORD = ShownRecord(1, 2, 1_000, b"=cmd", b"\xff", [("h", None), ("a", b"b")], 10)


def test_exports_are_what_commands_read_and_spreadsheets_do_not_run() -> None:
    line = json.loads(json_lines("t", [RECORD]))
    assert line["key"] == "=cmd" and line["value_base64"] == "/w==" and line["timestamp"] == "1970-01-01T00:00:01.000Z"
    assert line["headers"] == [{"name": "h", "value": None}, {"name": "a", "value": "b"}]
    (row,) = csv.reader([csv_lines([RECORD]).decode()])
    assert row == ["1", "2", "1970-01-01T00:00:01.000Z", "'=cmd", "/w==", '[["h", null], ["a", "b"]]']


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_a_cell_that_a_spreadsheet_may_run_has_an_apostrophe_in_front(first: str) -> None:
    text = f'{first}1+1;"=1'
    record = RECORD._replace(key=text.encode(), value=f"a{text}".encode())
    (row,) = csv.reader(io.StringIO(csv_lines([record]).decode(), newline=""))
    assert row[3:5] == [f"'{text}", f"a{text}"]


def test_a_file_of_csv_begins_with_the_mark_by_which_excel_knows_utf_8() -> None:
    whole = csv_head() + csv_lines([RECORD._replace(value="ž".encode())])
    assert whole.startswith(b"\xef\xbb\xbf")
    (row,) = csv.DictReader(io.StringIO(whole.decode("utf-8-sig"), newline=""))
    assert row["partition"] == "1" and row["value"] == "ž"


def test_bytes_are_shown_as_what_they_are() -> None:
    assert shown_bytes(None) == ("null", "null")
    assert shown_bytes("ž".encode()) == ("ž", "text")
    assert shown_bytes(b"a" + "ž".encode()[:1]) == ("a", "text")
    assert shown_bytes(b"\xff\x00") == ("ff 00", "binary")
    assert shown_bytes(b"\x00\x01ab")[1] == "binary"


@pytest.mark.parametrize(
    ("value", "how"),
    [
        (b"\nfirst line is empty", "text"),
        (b"a\nb\t\x01", "text"),
        (b"\xef\xbb\xbfmark", "text"),
        (b"a\r\nb", "base64"),
        (b"a\0b", "base64"),
        (b"\xff", "base64"),
        (b"", "text"),
        (None, "null"),
    ],
)
def test_what_a_form_has_of_a_record_is_sent_as_it_was(value: bytes | None, how: str) -> None:
    """A browser makes CR LF of each line break, and drops NUL."""
    form = form_of(value, value, [])
    assert form["value_as"] == form["key_as"] == how
    sent = {name: text.replace("\n", "\r\n") for name, text in form.items()}
    assert record_of(sent)[1:3] == (value, value)


def test_headers_of_a_form_are_those_of_the_record() -> None:
    values = (b"text", b"", None, b"\xff\0", b" spaces ", b": colon", b"two\nlines", b"a: b", "\u2028".encode())
    headers = [(f"h-{number}", value) for number, value in enumerate(values)]
    form = form_of(None, None, headers)
    assert form["headers"].startswith("h-0: text\nh-1: \nh-2::\nh-3:: /wA=\nh-4:: ")
    assert record_of({"headers": form["headers"].replace("\n", "\r\n")}).headers == headers
    for name in ("", " x", "a:b", "a\nb", "a\0"):
        with pytest.raises(ConfigError, match="has a name that a line"):
            form_of(None, None, [(name, b"")])
    with pytest.raises(ConfigError, match="the header 'a' is not base64"):
        record_of({"headers": "a:: ?"})


def test_a_form_and_its_record_are_the_same() -> None:
    record = record_of({"key": "k", "value": "/w==", "value_as": "base64", "headers": "a: b: c\n\n", "partition": "3"})
    assert record == (3, b"k", b"\xff", [("a", b"b: c")])
    assert record_of({"key_as": "null", "value": "a\r\nb"})[1:3] == (None, b"a\nb")
    again = record_of(form_of(record.key, record.value, record.headers))
    assert again == (None, *record[1:])
    for wrong in ({"headers": "no colon"}, {"value_as": "base64", "value": "?"}, {"partition": "x"}, {"key_as": "?"},
                  {"partition": "1" * 5_000}):  # fmt: skip
        with pytest.raises(ConfigError):
            record_of(wrong)
