"""Calls as a connection would make them, for tests of what answers them."""

from moldau.net.server import Peer
from moldau.protocol.apis import Api
from moldau.requests.session import Call, Session

LISTENER = "PLAINTEXT"


def session(listener: str = LISTENER) -> Session:
    return Session(listener, Peer("127.0.0.1", 50_000), client_id="asker")


def call(api: Api, version: int, correlation_id: int = 7, listener: str = LISTENER) -> Call:
    return Call(session(listener), api.key, version, correlation_id, "asker")
