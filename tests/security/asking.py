"""Calls of clients with a principal and a host."""

from moldau.net.server import Peer
from moldau.protocol.apis import METADATA
from moldau.requests.session import Call, Session


def called(principal: str, host: str = "10.0.0.7") -> Call:
    session = Session("PLAINTEXT", Peer(host, 50_000), principal, client_id="asker")
    return Call(session, METADATA.key, 12, 7, "asker")
