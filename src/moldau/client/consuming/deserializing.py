"""From rows to the records that the caller gets: deserializers, then interceptors, in the caller's thread."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.fetched.record import Record, make_record
from moldau.errors import DeserializationFailed
from moldau.names import TopicPartition

if TYPE_CHECKING:
    from moldau.client.consuming.polling import Poller, Portion


class Maker:
    """Makes records of rows, as the settings say."""

    def __init__(self, settings: ConsumerSettings):
        self._key = settings.key_deserializer
        self._value = settings.value_deserializer
        self._interceptors = settings.interceptors
        self.keeps_bytes = False
        """Whether records are made without deserializers."""

    def records(
        self, portions: list["Portion"], poller: "Poller", taking: Callable[[dict[TopicPartition, int]], object]
    ) -> list[Record]:
        """The records of these portions. If a deserializer fails, the records before are returned, `portions` is cut
        down to them, and the failure is raised when the record comes first again. `taking` hears it if none are left.
        """
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
                if not made:
                    taking({})
            kept = [row for row in rows if row[0] < failed.offset]
            portions[number:] = [portions[number]._replace(rows=kept)] if kept else []
            if not made:
                raise failed
            break
        for interceptor in self._interceptors:
            made = interceptor.on_consume(made)
        if not made:
            taking({})
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
                failed = DeserializationFailed(tp, row[0], row[3], row[4], part, cause)
                failed.__cause__ = cause
                return failed
            made.append(make_record((offset, timestamp_ms, kind, key, value, headers, place)))
        return None
