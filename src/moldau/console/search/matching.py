"""Which records of a batch are hits: masks over Arrow columns, without an object for each record. Pure.

Expressions are RE2's, by Arrow: their time is linear in the text, whatever the expression.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from moldau.console.search.json_paths import JsonCondition
from moldau.console.search.wanted import SearchWanted
from moldau.errors import ConfigError


class TextMatcher:
    """Finds a text, or an RE2 expression, in a column. Raises `ConfigError` for an expression that RE2 refuses."""

    def __init__(self, pattern: str, *, is_regex: bool, is_case_sensitive: bool):
        self._pattern = pattern
        self._find = pc.match_substring_regex if is_regex else pc.match_substring
        self._ignores_case = not is_case_sensitive
        self._needs_text = is_regex or self._ignores_case
        try:
            self.mask(pa.array([""]))
        except pa.ArrowInvalid as wrong:
            why = " ".join(str(wrong).split()).removeprefix("Invalid regular expression: ")
            raise ConfigError(f"{pattern[:80]!r} is not an expression of RE2: {why[:200]}") from None

    def mask(self, column: pa.Array) -> pa.Array:
        """True where the column has it; null is never a hit."""
        if self._needs_text and pa.types.is_binary(column.type):
            try:
                column = column.cast(pa.string())
            except pa.ArrowInvalid:  # some are not UTF-8: those are searched with their other bytes replaced
                texts = [None if one is None else one.decode("utf-8", "replace") for one in column.to_pylist()]
                column = pa.array(texts, pa.string())
        return self._find(column, self._pattern, ignore_case=self._ignores_case).fill_null(False)


class SearchMatcher:
    """Finds what a search wants in the columns `key`, `value` and `headers` of record batches."""

    def __init__(self, wanted: SearchWanted):
        how = {"is_regex": wanted.is_regex, "is_case_sensitive": wanted.is_case_sensitive}
        self._key = TextMatcher(wanted.key, **how) if wanted.key else None
        self._value = TextMatcher(wanted.value, **how) if wanted.value else None
        self._header = TextMatcher(wanted.header, **how) if wanted.header else None
        self._header_name = wanted.header_name
        self._condition = wanted.condition

    def hits(self, key: pa.Array, value: pa.Array, headers: pa.Array) -> pa.Array | None:
        """The rows that match, as a mask; None if all do."""
        masks = []
        if self._key is not None:
            masks.append(self._key.mask(key))
        if self._value is not None:
            masks.append(self._value.mask(value))
        if self._header is not None or self._header_name:
            masks.append(self._in_headers(headers))
        found = None
        for mask in masks:
            found = mask if found is None else pc.and_(found, mask)
        if self._condition is None:
            return found
        return _in_json(value, self._condition, found)

    def _in_headers(self, headers: pa.Array) -> pa.Array:
        pairs, rows = headers.flatten(), pc.list_parent_indices(headers)
        names, values = pairs.field(0), pairs.field(1)
        if self._header_name:
            hits = pc.equal(names, self._header_name).fill_null(False)
            if self._header is not None:
                hits = pc.and_(hits, self._header.mask(values))
        else:
            assert self._header is not None
            hits = pc.or_(self._header.mask(names), self._header.mask(values))
        chosen = pc.unique(rows.filter(hits))
        return pc.is_in(pa.array(range(len(headers)), chosen.type), value_set=chosen)


def _in_json(value: pa.Array, condition: JsonCondition, among: pa.Array | None) -> pa.Array:
    """The rows whose value is JSON, in UTF-8, for which the condition holds, among those that are hits so far. Only
    those are parsed that have the names and the text that the condition asks for, or a backslash, by which JSON may
    write them otherwise."""
    may = among
    for text in condition.texts:
        has = pc.or_(pc.match_substring(value, text), pc.match_substring(value, "\\")).fill_null(False)
        may = has if may is None else pc.and_(may, has)
    rows = pa.array(range(len(value)), pa.int64())
    chosen = rows if may is None else rows.filter(may)
    candidates = value if may is None else value.filter(may)
    hits = [
        row for row, data in zip(chosen.to_pylist(), candidates.to_pylist(), strict=True) if _holds(data, condition)
    ]
    return pc.is_in(rows, value_set=pa.array(hits, pa.int64()))


def _holds(data: bytes | None, condition: JsonCondition) -> bool:
    if data is None:
        return False
    try:
        return condition.holds(json.loads(str(data, "utf-8")))
    except (ValueError, RecursionError):
        return False
