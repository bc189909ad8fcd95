"""Why a record was rejected: a rule by a stable short name, the field, and a sentence with the value, in JSON's words.

The names of rules are in tables, so they stay as they are; `docs/rejected-records.md` lists them.
"""

import datetime
import decimal
import json
from typing import Any, Final, NamedTuple

import pyarrow as pa

from moldau.pipeline.decoding.json_numbers import Number, dumps
from moldau.pipeline.tables.columns import WHY

NOT_UTF8: Final = "not_utf8"
NOT_JSON: Final = "not_json"
NOT_AN_OBJECT: Final = "not_an_object"
NOT_UNICODE: Final = "not_unicode"
TOO_DEEP: Final = "too_deep"
WRONG_TYPE: Final = "wrong_type"
WRONG_NUMBER: Final = "wrong_number"
WRONG_TEXT: Final = "wrong_text"
NO_EVENT_TIME: Final = "no_event_time"
NOT_FRAMED: Final = "not_framed"
UNKNOWN_SCHEMA: Final = "unknown_schema"
WRONG_AVRO: Final = "wrong_avro"
WRONG_PROTOBUF: Final = "wrong_protobuf"
NOT_AN_ENVELOPE: Final = "not_an_envelope"
NO_KEY: Final = "no_key"
WRONG_PARTITION: Final = "wrong_partition"
RULES: Final = (
    NOT_UTF8, NOT_JSON, NOT_AN_OBJECT, NOT_UNICODE, TOO_DEEP, WRONG_TYPE, WRONG_NUMBER, WRONG_TEXT, NO_EVENT_TIME,
    NOT_FRAMED, UNKNOWN_SCHEMA, WRONG_AVRO, WRONG_PROTOBUF, NOT_AN_ENVELOPE, NO_KEY, WRONG_PARTITION,
)  # fmt: skip
REASON_CHARACTERS_MAX: Final = 500
VALUE_CHARACTERS_MAX: Final = 80


class Rejection(NamedTuple):
    """`field` is the path of a field, with `[]` for any item of an array or value of a map; empty for the whole
    value."""

    rule: str
    reason: str
    field: str = ""


def with_why(rows: Any, rejections: list[Rejection]) -> Any:
    """A batch of rejected records with the columns `WHY`."""
    for field, column in zip(WHY, columns_of(rejections), strict=True):
        rows = rows.append_column(field, column)
    return rows


def columns_of(rejections: list[Rejection]) -> list[Any]:
    """The columns `WHY` of a batch of rejected records."""
    rows = [
        (_clean(one.reason)[:REASON_CHARACTERS_MAX], one.rule, _clean(one.field)[:REASON_CHARACTERS_MAX] or None)
        for one in rejections
    ]
    return [pa.array([row[at] for row in rows], pa.string()) for at in range(len(WHY))]


def described(value: Any) -> str:
    """A JSON value, or one of a column, for a sentence: `the text "x"`, `the number 1.5`, `true`, `the object {}`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, decimal.Decimal, Number)):
        return f"the number {_short(str(value) if not isinstance(value, Number) else value.text)}"
    if isinstance(value, datetime.date):
        return f"the time {value.isoformat()}"
    if isinstance(value, str):
        return f"the text {_short(json.dumps(value[:VALUE_CHARACTERS_MAX], ensure_ascii=False), value)}"
    if not isinstance(value, (list, dict)):
        return "no value of JSON"
    try:
        text = dumps(value)
    except RecursionError:
        text = "that nests too deeply"
    except (TypeError, ValueError):
        text = "with values that JSON does not have"
    return f"the {'array' if isinstance(value, list) else 'object'} {_short(text)}"


def not_utf8(error: UnicodeDecodeError) -> Rejection:
    return Rejection(NOT_UTF8, f"the value is not UTF-8: {error.reason} at byte {error.start}")


def _short(text: str, whole: str = "") -> str:
    cut = len(text) > VALUE_CHARACTERS_MAX or len(whole) > VALUE_CHARACTERS_MAX
    return f"{text[: VALUE_CHARACTERS_MAX - 3]}..." if cut else text


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()
