"""Inflates what a client has pushed, to a bound. Pure."""

from moldau.errors import ErrorCode, KafkaError
from moldau.records.compression import NONE, DecompressionError, decompress

NOT_COMPRESSED = NONE


def inflated(codec: int, payload: bytes, most: int) -> bytes:
    """The payload, inflated. Raises `KafkaError` (INVALID_RECORD) if it is not of that codec, or has more than `most`
    bytes: no more than those are ever allocated."""
    try:
        return bytes(decompress(codec, payload, most))
    except DecompressionError as wrong:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(wrong)) from None
