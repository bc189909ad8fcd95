"""Columns as Spark's DDL has them: `id BIGINT, tags ARRAY<STRING>, place STRUCT<lat: DOUBLE, lon: DOUBLE>`."""

import re
from typing import Final

import pyarrow as pa

from moldau.errors import ConfigError
from moldau.pipeline.decoding.event_times import TIMESTAMP

TYPES: Final = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "BYTE": pa.int8(), "SMALLINT": pa.int16(), "SHORT": pa.int16(),
    "INT": pa.int32(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "LONG": pa.int64(), "FLOAT": pa.float32(),
    "REAL": pa.float32(), "DOUBLE": pa.float64(), "STRING": pa.string(), "VARCHAR": pa.string(), "BINARY": pa.binary(),
    "DATE": pa.date32(), "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "DECIMAL": pa.decimal128(10, 0),
    "NUMERIC": pa.decimal128(10, 0),
}  # fmt: skip
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|[\w.$-]+|[<>(),:])")
DEPTH_MAX = 20


def columns_of(text: str) -> pa.Schema:
    """The columns. Raises `ConfigError` that says where the text is wrong."""
    tokens = _Tokens(text)
    fields = tokens.fields(0)
    tokens.at_end()
    if not fields:
        raise ConfigError("the schema has no column")
    return pa.schema(fields)


class _Tokens:
    def __init__(self, text: str):
        self._text = text
        self._at = 0

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        return match.group(1) if match else ""

    def _next(self, *wanted: str) -> str:
        match = _TOKEN.match(self._text, self._at)
        token = match.group(1) if match else ""
        if not token or (wanted and token not in wanted):
            near = self._text[self._at : self._at + 30].strip()
            expected = " or ".join(wanted) or "a name or type"
            raise ConfigError(f"the schema is no Spark DDL: {expected} is missing before {near or 'its end'!r}")
        assert match is not None
        self._at = match.end()
        return token

    def at_end(self) -> None:
        if self._text[self._at :].strip():
            self._next("the end")

    def fields(self, depth: int) -> list[pa.Field]:
        made: list[pa.Field] = []
        while True:
            name = self._next()
            name = name[1:-1].replace("``", "`") if name.startswith("`") else name
            if self._peek() == ":":
                self._next(":")
            made.append(pa.field(name, self._type(depth)))
            for word in ("NOT", "NULL"):
                if self._peek().upper() == word:
                    self._next()
            if self._peek() != ",":
                return made
            self._next(",")

    def _type(self, depth: int) -> pa.DataType:
        if depth > DEPTH_MAX:
            raise ConfigError(f"the schema nests more than {DEPTH_MAX} types")
        word = self._next().upper()
        if word in ("ARRAY", "MAP", "STRUCT"):
            self._next("<")
            if word == "ARRAY":
                made = pa.list_(self._type(depth + 1))
            elif word == "STRUCT":
                made = pa.struct(self.fields(depth + 1))
            else:
                if not pa.types.is_string(self._type(depth + 1)):
                    raise ConfigError("the keys of a MAP are STRING")
                self._next(",")
                made = pa.map_(pa.string(), self._type(depth + 1))
            self._next(">")
            return made
        if word not in TYPES:
            raise ConfigError(f"the schema has type {word}, which is none of {', '.join(TYPES)}, ARRAY, MAP, STRUCT")
        sizes = self._sizes()
        if word in ("DECIMAL", "NUMERIC") and sizes:
            try:
                return pa.decimal128(sizes[0], sizes[1] if len(sizes) > 1 else 0)
            except ValueError as error:
                raise ConfigError(f"the schema has a wrong DECIMAL: {error}") from None
        return TYPES[word]

    def _sizes(self) -> list[int]:
        if self._peek() != "(":
            return []
        self._next("(")
        sizes = []
        while True:
            number = self._next()
            if not number.isdigit():
                raise ConfigError(f"the schema has the size {number!r}, which is not a number")
            sizes.append(int(number))
            if self._next(",", ")") == ")":
                return sizes
