"""Decodes the records of internal topics (groups, offsets, transactions) into documents.

A record of an unknown kind, or one that is cut off, becomes a document with the reason; the caller shows its key and
value as bytes in any case.
"""

import dataclasses
import uuid
from collections.abc import Callable
from typing import Any, Final

from moldau.errors import ProtocolViolation
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, short_id
from moldau.protocol import consumer, stored
from moldau.protocol.stored import RecordType, read_stored

CONSUMERS: Final = "consumer"


def offsets(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """A record of `__consumer_offsets`."""
    shown = _decoded(stored.OFFSETS, key, value)
    said = shown.get("value")
    if said is not None and said.get("protocol_type") == CONSUMERS:
        for member in said["members"]:
            _show_in(member, "subscription", consumer.read_subscription)
            _show_in(member, "assignment", consumer.read_assignment)
    return shown


def transactions(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """A record of `__transaction_state`."""
    shown = _decoded(stored.TRANSACTIONS, key, value)
    said = shown.get("value")
    if said is not None and 0 <= said["transaction_status"] < len(stored.TRANSACTION_STATES):
        said["transaction_status"] = stored.TRANSACTION_STATES[said["transaction_status"]]
    return shown


DECODERS: Final = {"offsets": offsets, "transactions": transactions}
OF_TOPIC: Final = {OFFSETS_TOPIC: offsets, TRANSACTIONS_TOPIC: transactions}


def _decoded(kinds: dict[int, RecordType], key: bytes | None, value: bytes | None) -> dict[str, Any]:
    try:
        stored = read_stored(kinds, key or b"", value)
    except ProtocolViolation as wrong:
        return {"type": "unreadable", "message": str(wrong)}
    if stored is None:
        return {"type": "unknown"}
    shown = {"type": stored.kind, **plain(stored.key)}
    if stored.value is None:
        return {**shown, "value": None}
    return {**shown, "version": stored.version, "value": plain(stored.value)}


def _show_in(member: dict[str, Any], name: str, read: Callable[[bytes], Any]) -> None:
    """Replace bytes by their decoded form, if they can be decoded."""
    if member[name]:
        try:
            member[name] = plain(read(member[name]))
        except ProtocolViolation:
            return


def plain(value: Any) -> Any:
    """A message as nested dicts of its fields; UUIDs in Kafka's base64 form."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, uuid.UUID):
        return short_id(value)
    return value
