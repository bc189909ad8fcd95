"""Reads the records of `__consumer_offsets`, in every version that Kafka has ever written.

A key begins with an int16 that is the type of its record: 0 and 1 are an offset (`offsets.records`), 2 a classic group
(`classic.records`), the others belong to consumer groups (`consumer.records`). Unknown types and versions are skipped:
share and streams groups may have written to the same topic.
"""

from typing import TypeAlias

from moldau.coordinators.classic.records import CLASSIC_RECORD_TYPE, ClassicGroupRecord, read_classic_group_record
from moldau.coordinators.consumer.records import (
    CONSUMER_RECORD_TYPES,
    ConsumerGroupRecord,
    read_consumer_group_record,
)
from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.offsets.records import OFFSET_RECORD_TYPES, OffsetRecord, read_offset
from moldau.errors import ProtocolViolation
from moldau.protocol.primitives import read_int16

OffsetsTopicRecord: TypeAlias = ClassicGroupRecord | OffsetRecord | ConsumerGroupRecord


def read_record(record: InternalRecord) -> OffsetsTopicRecord | None:
    """The decoded record; None for an unknown type or version. Raises `ProtocolViolation` if it is truncated."""
    if len(record.key) < 2:
        raise ProtocolViolation("a record's key is too short for its type")
    record_type, at = read_int16(record.key, 0)
    if record_type == CLASSIC_RECORD_TYPE:
        return read_classic_group_record(record, at)
    if record_type in OFFSET_RECORD_TYPES:
        return read_offset(record)
    if record_type in CONSUMER_RECORD_TYPES:
        return read_consumer_group_record(record_type, record, at)
    return None
