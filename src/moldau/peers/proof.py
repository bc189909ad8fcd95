"""How a broker proves to another one that it belongs to the cluster: it has read the cluster's secret in the metadata
store, which clients cannot read.

The broker that is dialled asks with a random challenge, and the other one answers with a keyed hash of it (HMAC,
RFC 2104) over who dials whom: the secret itself is never sent, and an answer holds for one connection only.
"""

import hmac
import struct
from typing import Final

_IDS: Final = struct.Struct(">iqi")


def proof(secret: bytes, challenge: bytes, broker_id: int, broker_epoch: int, expected_id: int) -> bytes:
    """The answer of that broker, in its life of that epoch, to the challenge of the broker `expected_id`."""
    return hmac.digest(secret, _IDS.pack(broker_id, broker_epoch, expected_id) + challenge, "sha256")


def is_proof(answer: bytes, expected: bytes) -> bool:
    """Compares in a time that says nothing of where they differ."""
    return hmac.compare_digest(answer, expected)
