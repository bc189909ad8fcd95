"""What a load writes of one topic, and where: the part of a task that all tasks of the topic share."""

import uuid
from collections.abc import Mapping
from typing import NamedTuple

from moldau.pipeline.loading.decoding import ValueDecoder
from moldau.pipeline.tables.data_file import TableFormat
from moldau.pipeline.tables.storage import Location

Quarantined = Mapping[int, frozenset[int]]
"""Offsets by partition that are in the table of rejected records already."""


class Target(NamedTuple):
    """Pickled and sent to the workers. With `key_columns` the table has one row per key. With `fail_on_data_loss` a
    task fails if records of its ranges expire before it has read them."""

    topic: str
    bootstrap: str
    isolation_level: str
    load_id: str
    compression: str
    table: Location
    rejected: Location
    partition_by: str
    decoder: ValueDecoder | None
    quarantined: Quarantined
    topic_id: uuid.UUID | None = None
    table_format: TableFormat = "delta"
    rejected_max: int | None = None
    key_columns: tuple[str, ...] = ()
    fail_on_data_loss: bool = True
