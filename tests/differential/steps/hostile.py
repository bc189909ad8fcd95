"""Frames that no client sends: what closes the connection and what is answered nevertheless.

Each goes over a connection that may close; after each batch of them the broker must still answer over another.
"""

import struct

from moldau.protocol.apis import (
    API_VERSIONS,
    APIS,
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_GROUPS,
    EXPIRE_DELEGATION_TOKEN,
    HEARTBEAT,
    METADATA,
    OFFSET_COMMIT,
    PRODUCE,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from tests.differential.batches import batch
from tests.differential.playing import body
from tests.differential.script import Step, build, raw, step
from tests.differential.steps.produce import to

NOT_RECORDED = (
    SASL_HANDSHAKE,
    SASL_AUTHENTICATE,
    CREATE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
)
"""APIs that are newer here than the recordings."""
ASK_METADATA = body(METADATA, 1, build(METADATA.request, {"topics": [{"name": "plain"}]}, {}))
ASK_METADATA_12 = body(METADATA, 12, build(METADATA.request, {"topics": [{"name": "plain"}]}, {}))
PRODUCE_8 = body(PRODUCE, 8, build(PRODUCE.request, to("plain", batch(b"x")), {}))


def header(key: int, version: int, client_id: bytes = b"raw", size: int | None = None) -> bytes:
    return struct.pack(">hhih", key, version, 7, len(client_id) if size is None else size) + client_id


def frame(name: str, data: bytes, version: int = 1, **more: object) -> Step:
    """A frame that is answered, if at all, as Metadata of that version."""
    return raw(f"a frame with {name}", METADATA, version, data, connection="hostile", **more)


VERSIONS: tuple[Step, ...] = (
    raw("a version of ApiVersions that is not there yet", API_VERSIONS, 99, header(18, 99) + b"\0", read_as=0),
    raw("a negative version of ApiVersions", API_VERSIONS, -1, header(18, -1), read_as=0, connection="hostile"),
    raw(
        "ApiVersions cut short",
        API_VERSIONS,
        3,
        header(18, 3) + b"\0\x05ab",
        connection="hostile",
    ),
    raw("ApiVersions with bytes after it", API_VERSIONS, 0, header(18, 0) + b"more"),
) + tuple(
    raw(
        f"{api.name} beyond its highest version",
        api,
        api.low,
        header(api.key, 99) + b"\0",
        connection="hostile",
    )
    for api in APIS.values()
    if api is not API_VERSIONS and api not in NOT_RECORDED
)

FRAMES: tuple[Step, ...] = (
    frame("nothing in it", b""),
    frame("one byte", b"\0"),
    frame("half a header", header(3, 1)[:6]),
    frame("a header and nothing more", header(3, 1)),
    frame("an API nobody knows", header(999, 0)),
    frame("a negative API", header(-1, 0)),
    frame("a negative version", header(3, -1)),
    frame("an API between controllers", header(52, 0) + b"\0"),
    frame("a client id longer than the frame", header(3, 1, b"abc", 300)),
    frame("no client id", header(3, 1, b"", -1) + ASK_METADATA[13:]),
    frame("bytes after the request", ASK_METADATA + b"more"),
    frame("a request cut short", ASK_METADATA[:-3]),
    frame("a flexible request cut short", ASK_METADATA_12[:-2], 12),
    frame("an array of two thousand million", header(3, 1) + b"\x7f\xff\xff\xff"),
    frame("a compact array of four thousand million", header(3, 9) + b"\0\xff\xff\xff\xff\x0f", 9),
    frame("a varint of six bytes", header(3, 9) + b"\0\x80\x80\x80\x80\x80\x01", 9),
    frame("a null where none may be", header(15, 0) + b"\xff\xff\xff\xff"),
    frame("a null string of length minus two", header(3, 1, b"", -2) + ASK_METADATA[13:]),
    frame("a null array of length minus two", header(3, 1) + b"\xff\xff\xff\xfe"),
    frame("a name that is not UTF-8", header(3, 5) + b"\0\0\0\1\0\2\xff\xfe\0", 5),
    frame("a client id that is not UTF-8", header(3, 1, b"\xff\xfe") + ASK_METADATA[13:]),
    frame("a tagged field nobody knows", ASK_METADATA_12[:-1] + b"\x01\x63\x02ab", 12),
    frame("a tagged field in its header", header(3, 12) + b"\x01\x63\x01a" + ASK_METADATA_12[14:], 12),
    frame("a tagged field longer than the frame", ASK_METADATA_12[:-1] + b"\x01\x63\x7fab", 12),
    frame("more tagged fields than bytes", ASK_METADATA_12[:-1] + b"\x7f", 12),
    raw("a size of two thousand million", METADATA, 1, b"\x7f\xff\xff\xff", sized=False, connection="hostile"),
    raw("a negative size", METADATA, 1, b"\xff\xff\xff\xff" + b"x" * 20, sized=False, connection="hostile"),
    raw("the greeting of another protocol", METADATA, 1, b"GET / HTTP/1.1\r\n\r\n", sized=False, connection="hostile"),
    raw("Produce cut short", PRODUCE, 8, PRODUCE_8[:-20], connection="hostile"),
    raw("Heartbeat without its body", HEARTBEAT, 0, header(12, 0), connection="hostile"),
    raw(
        "OffsetCommit of a partition count that is none",
        OFFSET_COMMIT,
        2,
        header(8, 2) + b"\0\1g\xff\xff\xff\xff\0\0" + bytes(8) + b"\0\0\0\1\0\1t\x7f\0\0\0",
        connection="hostile",
    ),
    step("and still it answers", METADATA, 1, {"topics": [{"name": "plain"}]}),
    step("a group whose name is long", DESCRIBE_GROUPS, 5, {"groups": ["g" * 5000]}),
    step("a group whose name is odd", DESCRIBE_GROUPS, 5, {"groups": ["ü\n\t\0", " "]}),
)

STEPS: tuple[Step, ...] = (*VERSIONS, *FRAMES)
