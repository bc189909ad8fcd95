"""The audit's headers: event time and server of each record, whatever a later cluster does to its timestamp."""

import socket
from typing import TYPE_CHECKING

from moldau.client.producing.outgoing import OutgoingRecord, checked_headers
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.client.producing.columnar import RecordColumns

TIMESTAMP, SERVER = "audit.timestamp", "audit.server"


class AuditHeaders:
    """An interceptor that adds the headers to single records."""

    def __init__(self, settings: ProducerSettings):
        self._now_ms = (settings.runtime or Runtime()).clock.now_ms
        self._server = socket.gethostname().encode()

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        at = self._now_ms() if record.timestamp_ms is None else record.timestamp_ms
        ours = ((TIMESTAMP, str(at).encode()), (SERVER, self._server))
        return record._replace(timestamp_ms=at, headers=(*checked_headers(record.headers), *ours))


def with_audit_headers(columns: "RecordColumns") -> "RecordColumns":
    """The same rows with the headers behind their own."""
    import pyarrow as pa

    from moldau.records.arrays import pairs
    from moldau.records.arrow import HEADERS

    server = (SERVER, socket.gethostname().encode())
    times = columns.timestamps_ms.cast(pa.int64()).to_pylist()
    given = [()] * len(times) if columns.headers is None else columns.headers.to_pylist()
    rows = [
        [*((header["key"], header["value"]) for header in own or ()), (TIMESTAMP, str(at).encode()), server]
        for own, at in zip(given, times, strict=True)
    ]
    return columns._replace(headers=pairs(rows, HEADERS))
