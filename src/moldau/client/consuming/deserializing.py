"""From rows to the records that the caller gets: deserializers, then interceptors, in the caller's thread."""

from typing import TYPE_CHECKING

from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.record import Record, make_record
from moldau.errors import MoldauError
from moldau.names import TopicPartition

if TYPE_CHECKING:
    from moldau.client.consuming.polling import Poller, Portion


class DeserializationFailed(MoldauError):
    """A deserializer raised on a record; `__cause__` is its exception. `raw_key` and `raw_value` are the record's
    bytes. The record stays the next one to read: seek to `offset + 1` to leave it out."""

    def __init__(self, tp: TopicPartition, row: Record, part: str, cause: Exception):
        super().__init__(f"the {part} of the record at offset {row[0]} of {tp} cannot be read: {cause!r}")
        self.topic_partition = tp
        self.offset = row[0]
        self.raw_key: bytes | None = row[3]
        self.raw_value: bytes | None = row[4]


class Maker:
    """Makes records of rows, as the settings say."""

    def __init__(self, settings: ConsumerSettings):
        self._key = settings.key_deserializer
        self._value = settings.value_deserializer
        self._interceptors = settings.interceptors
        self.keeps_bytes = False
        """Whether records are made without deserializers."""

    def records(self, portions: list["Portion"], poller: "Poller") -> list[Record]:
        """The records of these portions. If a deserializer fails, the records before are returned, `portions` is cut
        down to them, and the failure is raised when the record comes first again."""
        made: list[Record] = []
        for number, (state, rows) in enumerate(portions):
            if self.keeps_bytes or (self._key is None and self._value is None):
                made += rows
                continue
            failed = self._deserialize(state.tp, rows, made)
            if failed is None:
                continue
            with poller.lock:
                for undone, others in portions[number:]:
                    undone.go_back(failed.offset if undone is state else others[0][0])
            kept = [row for row in rows if row[0] < failed.offset]
            portions[number:] = [portions[number]._replace(rows=kept)] if kept else []
            if not made:
                raise failed
            break
        for interceptor in self._interceptors:
            made = interceptor.on_consume(made)
        return made

    def deserialized(self, record: Record) -> Record:
        """A record of bytes, deserialized. Raises `DeserializationFailed`."""
        if self._key is None and self._value is None:
            return record
        made: list[Record] = []
        failed = self._deserialize(record.place.tp, [record], made)
        if failed is not None:
            raise failed
        return made[0]

    def _deserialize(self, tp: TopicPartition, rows: list[Record], made: list[Record]) -> DeserializationFailed | None:
        for row in rows:
            offset, timestamp_ms, kind, key, value, headers, place = row
            part = "key"
            try:
                if key is not None and self._key is not None:
                    key = self._key(key)
                part = "value"
                if value is not None and self._value is not None:
                    value = self._value(value)
            except Exception as cause:
                failed = DeserializationFailed(tp, row, part, cause)
                failed.__cause__ = cause
                return failed
            made.append(make_record((offset, timestamp_ms, kind, key, value, headers, place)))
        return None
