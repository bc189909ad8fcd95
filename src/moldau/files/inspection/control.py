"""Reads control records: the markers of transactions, and the control records of Kafka's metadata log.

    key     version int16 0 | type int16: 0 abort, 1 commit, 2-6 of the metadata log
    value   of a marker: version int16 0 | coordinator_epoch int32
Source: "Control Batches" of Kafka's documentation; KIP-98.
"""

import struct
from typing import Any, Final

TYPES: Final = (
    "abort", "commit", "leader change", "snapshot header", "snapshot footer", "kraft version", "kraft voters",
)  # fmt: skip
ABORT, COMMIT = 0, 1
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")


def marker(key: bytes | None) -> int | None:
    """The type in the key of a control record; None if the bytes are not such a key."""
    return None if key is None or len(key) < _KEY.size else int(_KEY.unpack_from(key)[1])


def decoded(key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    kind = marker(key)
    if kind is None:
        return None
    shown: dict[str, Any] = {"type": TYPES[kind] if 0 <= kind < len(TYPES) else f"unknown ({kind})"}
    if kind in (ABORT, COMMIT) and value is not None and len(value) >= _VALUE.size:
        shown["coordinator_epoch"] = _VALUE.unpack_from(value)[1]
    return shown
