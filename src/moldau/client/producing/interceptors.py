"""Interceptors of a producer: they see each record before it is sent and what became of it, and may replace it.

As in Kafka, what an interceptor raises is logged and stops nothing: the next one gets the record as it was.
"""

import logging
from collections.abc import Iterable
from typing import Any

from moldau.client.producing.audit_headers import AuditHeaders
from moldau.client.producing.delivery import Delivered, OnDelivery, call_back
from moldau.client.producing.outgoing import OutgoingRecord
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.errors import MoldauError

logger = logging.getLogger(__name__)


class ProducerInterceptor:
    """The methods of an interceptor. An object with one of them is enough."""

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        """The record to send instead, in the thread that called `send`, before serializers and partitioner."""
        return record

    def on_acknowledgement(self, error: MoldauError | None, delivered: Delivered | None) -> None:
        """Called with the error of a record or its place, before the record's own callback; one of both is None."""


class Interceptors:
    """The interceptors of one producer, in order."""

    def __init__(self, interceptors: Iterable[Any]):
        each = [*interceptors]
        self._on_send = [one.on_send for one in each if hasattr(one, "on_send")]
        self._on_acknowledgement = [one.on_acknowledgement for one in each if hasattr(one, "on_acknowledgement")]

    def sending(
        self, record: OutgoingRecord, on_delivery: OnDelivery | None
    ) -> tuple[OutgoingRecord, OnDelivery | None]:
        """The record to send, and the callback that tells the interceptors before the caller."""
        for intercept in self._on_send:
            try:
                changed = intercept(record)
                if not isinstance(changed, OutgoingRecord):
                    raise TypeError(f"on_send returned {changed!r}, not an OutgoingRecord")
                record = changed
            except Exception:
                logger.exception("an interceptor raised on a record of topic %s, which is sent as it was", record.topic)
        if self._on_acknowledgement:
            on_delivery = Acknowledging(self._on_acknowledgement, on_delivery)
        return record, on_delivery


def interceptors_of(settings: ProducerSettings) -> Interceptors | None:
    """The interceptors that the settings name; the audit's headers are added last."""
    each = [*(settings.interceptors or ())]
    if settings.audit_headers:
        each.append(AuditHeaders(settings))
    return Interceptors(each) if each else None


class Acknowledging:
    """Tells the interceptors what became of a record, then its caller. `asked`: whether the caller left a callback."""

    def __init__(self, interceptors: list[OnDelivery], on_delivery: OnDelivery | None):
        self._interceptors = interceptors
        self._on_delivery = on_delivery
        self.asked = on_delivery is not None

    def __call__(self, error: MoldauError | None, delivered: Delivered | None) -> None:
        for intercept in self._interceptors:
            call_back(intercept, "an interceptor's on_acknowledgement", error, delivered)
        if self._on_delivery is not None:
            self._on_delivery(error, delivered)
