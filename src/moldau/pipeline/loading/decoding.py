"""The seam between loading and decoding: a decoder turns the values of a topic's records into columns.

A load without a decoder writes `value` as it was produced. A decoder is pickled and sent to Spark's workers.
"""

from typing import Any, Protocol

import pyarrow


class ValueDecoder(Protocol):
    """Decodes the values of one topic.

    `schema` has the columns that take the place of `value`. `decode` is given a batch in the columns of a table
    (`tables.columns`: `value`, `_key`, `_partition`, ...) and returns two batches:

    - the decoded records, in their order: the columns of `schema`, then those of the record, unchanged;
    - the rejected records: the given columns and those of `tables.columns.WHY`.

    `keys` has the columns that take the place of `_key`, None if it stays; then they are behind those of `schema`.

    Each given record is in one of them. Rows are dated by the column `event_time`, a timestamp of `schema` or
    `_timestamp`; a record without that time goes to the null date. `notes` are sentences for the user about the
    columns.
    """

    schema: pyarrow.Schema
    event_time: str
    notes: tuple[str, ...]
    keys: pyarrow.Schema | None

    def decode(self, batch: Any) -> tuple[Any, Any]: ...
