"""Keys as columns, in the place of `_key`: they are decoded as values are, by the same decoders.

A key that is one value (text, or an Avro type that is not a record) is the column `_key`; the fields of a key are
columns named `_key_FIELD`. A value's field with such a name gets another underscore before it, so that it never shares
a column with a key. A record without a key is a row whose key columns are null.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.decoding.choosing import Decoding, values_of
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.known_columns import columns_of_fields, table_names
from moldau.pipeline.decoding.text_values import TextValues
from moldau.pipeline.decoding.topic_decoder import VALUE, TopicDecoder
from moldau.pipeline.tables.columns import WHY

KEY: Final = "_key"
PREFIX: Final = "_key_"
"""Of the columns of a key's fields; Flink calls it `key.fields-prefix`."""
GIVEN_VALUE: Final = "given value"
GIVEN_KEY: Final = "given key"
"""Where they wait, under names that no column of a table can have."""


class KeyedDecoder:
    """Decodes keys with `keys`, whose values are keys, and then values with `values`; None leaves them as they are."""

    def __init__(self, keys: TopicDecoder, values: TopicDecoder | None):
        self._keys = keys
        self._values = values
        self.keys = self._keys.schema
        self.schema = pa.schema([(VALUE, pa.binary())]) if values is None else values.schema
        self.event_time = "_timestamp" if values is None else values.event_time
        self.notes = keys.notes + (() if values is None else values.notes)

    def decode(self, batch: Any) -> tuple[Any, Any]:
        """The decoded records, in their order, and the rejected ones with a reason each."""
        others = [name for name in batch.schema.names if name not in (VALUE, KEY)]
        given = {VALUE: batch[KEY], GIVEN_VALUE: batch[VALUE], GIVEN_KEY: batch[KEY]}
        keyed, bad = self._keys.decode(pa.RecordBatch.from_pydict(given | {name: batch[name] for name in others}))
        columns = {VALUE: keyed[GIVEN_VALUE]}
        columns |= {name: keyed[name] for name in (*self.keys.names, *others, GIVEN_KEY)}
        made, rejected = pa.RecordBatch.from_pydict(columns), _as_given(bad, bad[GIVEN_VALUE], batch.schema)
        if bad.num_rows:
            for name, of_key in (("reason", _of_key(rejected["reason"])), ("field", _field_of_key(rejected["field"]))):
                rejected = rejected.set_column(rejected.schema.get_field_index(name), name, of_key)
        if self._values is not None:
            made, unfit = self._values.decode(made)
            if unfit.num_rows:
                both = pa.concat_batches([rejected, _as_given(unfit, unfit[VALUE], batch.schema)])
                rejected = both.take(pc.sort_indices(both["_offset"]))
        return made.select([name for name in made.schema.names if name != GIVEN_KEY]), rejected


def with_keys(
    topic: str,
    values: Decoding,
    keys: Decoding,
    sample: Callable[[str], Iterable[Sampled]],
    known: pa.Schema | None = None,
) -> KeyedDecoder:
    """The decoder of a topic whose keys are decoded; `sample` reads some values or keys, `known` are the columns of its
    table. Raises `ConfigError` and `RegistryError`."""
    columns = list(known or ())
    of_keys = [field.with_name(field.name[len(PREFIX) :]) for field in columns if _is_of_key(field.name)]
    chosen = values_of(topic, keys, partial(sample, "key"), pa.schema(of_keys))
    assert chosen is not None, "without --decode-key there is no key to decode"
    key_decoder = chosen.values
    if isinstance(key_decoder, TextValues) or (isinstance(key_decoder, AvroValues) and key_decoder.alone):
        names = [KEY]
    else:
        names = [PREFIX + name for name in table_names(key_decoder.schema.names)]
    of_values = known if known is None else pa.schema([field for field in columns if not _is_of_key(field.name)])
    others = values_of(topic, values, partial(sample, "value"), of_values)
    decoder = None
    if others is not None:
        fields = [f"_{name}" if _is_of_key(name) else name for name in others.values.schema.names]
        apart = table_names(fields, {} if of_values is None else columns_of_fields(fields, of_values))
        decoder = TopicDecoder(others.values, values.event_time, of_values, others.notes, apart)
    return KeyedDecoder(TopicDecoder(key_decoder, known=known, notes=chosen.notes, names=names), decoder)


def _is_of_key(name: str) -> bool:
    return name.lower().startswith(PREFIX)


def _as_given(rows: Any, values: Any, schema: pa.Schema) -> Any:
    """Rejected rows in the columns that a decoder was given, and their reasons."""
    raw = {VALUE: values, KEY: rows[GIVEN_KEY]}
    names = [*schema.names, *WHY.names]
    return pa.RecordBatch.from_pydict({name: raw[name] if name in raw else rows[name] for name in names})


def _field_of_key(fields: Any) -> Any:
    return pc.binary_join_element_wise(PREFIX, fields, "")


def _of_key(reasons: Any) -> Any:
    """Reasons that speak of the key."""
    named = pc.replace_substring_regex(reasons, "^the value", "the key")
    return pc.if_else(pc.starts_with(named, "the key"), named, pc.binary_join_element_wise("key: ", named, ""))
