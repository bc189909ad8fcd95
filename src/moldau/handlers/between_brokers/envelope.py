"""Envelope (key 58), version 0: a client's request that another broker forwards, since only the controller can answer
it (KIP-590).

The request is answered as if the client had sent it here: with its principal, rights, address and version.
NOT_CONTROLLER in the envelope means that nothing was changed and the request should go to another broker. A request
that clients may not have forwarded is INVALID_REQUEST, one in an unknown version UNSUPPORTED_VERSION.
"""

import ipaddress
from collections.abc import Awaitable, Callable, Collection

from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.net.server import Handle, Peer
from moldau.protocol.codec import read_header
from moldau.protocol.messages.envelope import DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse
from moldau.protocol.primitives import read_int16, write_int16
from moldau.protocol.schema import read, write
from moldau.replies import Muting, Reply, Unanswered
from moldau.requests.session import ANONYMOUS, Call, Session

_PRINCIPAL_VERSION = 0
_SIZE_BYTES = 4


class Envelope:
    """`requests_of` returns the function that answers the frames of a session; `forwarded` has the keys of the APIs
    that are forwarded."""

    def __init__(self, requests_of: Callable[[Session], Handle], forwarded: Collection[int]):
        self._requests_of = requests_of
        self._forwarded = forwarded

    async def __call__(self, request: EnvelopeRequest, call: Call) -> EnvelopeResponse:
        data = memoryview(request.request_data)
        try:
            header = read_header(data)
            if header.key not in self._forwarded:
                return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
            peer = Peer(_host(request.client_host_address), 0)
            principal, authorizer = _principal(request.request_principal), call.session.authorizer
            session = Session(call.session.listener, peer, principal, is_forwarded=True, authorizer=authorizer)
        except ProtocolViolation:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        try:
            answer = self._requests_of(session)(data)
            reply = await answer if isinstance(answer, Awaitable) else answer
        except ProtocolViolation:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        assert not isinstance(reply, Unanswered), "no Produce is forwarded"
        return EnvelopeResponse(response_data=_joined(reply.reply if isinstance(reply, Muting) else reply))


def envelope(frame: bytes, session: Session) -> EnvelopeRequest:
    """The envelope around a client's request, which `frame` is without its size."""
    return EnvelopeRequest(
        request_data=frame,
        request_principal=_principal_data(session.principal),
        client_host_address=_address(session.peer.host),
    )


def _joined(reply: Reply) -> bytes:
    pieces = [bytes(piece) for piece in reply or () if not isinstance(piece, tuple)]  # no such reply has file slices
    return b"".join(pieces)[_SIZE_BYTES:]


def _principal_data(principal: str) -> bytes:
    kind, _, name = principal.partition(":")
    out = bytearray()
    write_int16(out, _PRINCIPAL_VERSION)
    return bytes(out + write(DefaultPrincipalData(type=kind, name=name), _PRINCIPAL_VERSION, True))


def _principal(data: bytes | None) -> str:
    """Raises `ProtocolViolation`."""
    if data is None:
        return ANONYMOUS
    if len(data) < 2 or read_int16(data, 0)[0] < _PRINCIPAL_VERSION:
        raise ProtocolViolation("a principal that cannot be read")
    principal = read(DefaultPrincipalData, _PRINCIPAL_VERSION, True, data, 2)[0]
    return f"{principal.type}:{principal.name}"


def _address(host: str) -> bytes:
    """The bytes of an IP address, without the zone of a link-local one; none for any other name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return b""


def _host(address: bytes) -> str:
    """Raises `ProtocolViolation`."""
    if not address:
        return ""
    try:
        return str(ipaddress.ip_address(bytes(address)))
    except ValueError:
        raise ProtocolViolation(f"an address of {len(address)} bytes") from None
