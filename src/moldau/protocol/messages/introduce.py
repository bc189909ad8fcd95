"""Introduce (API key 30000, ours): the first requests of a broker that has dialled another one of its cluster.

The first one has no `proof`, and is answered with a challenge; the second one has the proof that answers it
(`peers/proof.py`). Its answer has the versions of the APIs between brokers; they are answered on introduced connections
only, and ApiVersions does not advertise them.
"""

from moldau.protocol.schema import ARRAY, BYTES, INT16, INT32, INT64, STRING, message


@message
class IntroduceRequest:
    cluster_id: str = STRING()
    broker_id: int = INT32()
    broker_epoch: int = INT64()
    expected_id: int = INT32()
    """The broker that should be here."""
    proof: bytes = BYTES()


@message
class PeerApiVersion:
    api_key: int = INT16()
    min_version: int = INT16()
    max_version: int = INT16()


@message
class IntroduceResponse:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)
    challenge: bytes = BYTES()
    api_keys: list[PeerApiVersion] = ARRAY(PeerApiVersion)
