"""Calls as a connection would make them, for tests of what answers them, and a client that may not do everything."""

from moldau.net.server import Peer
from moldau.protocol.apis import Api
from moldau.requests.access import Right
from moldau.requests.session import Authorizer, Call, Session

LISTENER = "PLAINTEXT"


class Denying:
    """An authorizer that denies rights: each on the resource of a name, or on all where the name is "*". `asked` are
    the rights and names that it was asked for, `logged` the denials of them that refuse something."""

    def __init__(self, *denied: tuple[Right, str]):
        self.deny(*denied)
        self.asked: list[tuple[Right, str]] = []
        self.logged: list[tuple[Right, str]] = []

    def deny(self, *denied: tuple[Right, str]) -> None:
        """Deny these from now on, and no others."""
        self._denied = frozenset(denied)

    def allows(self, call: Call, right: Right, name: str, logged: bool) -> bool:
        self.asked.append((right, name))
        if self._denied.isdisjoint({(right, name), (right, "*")}):
            return True
        if logged:
            self.logged.append((right, name))
        return False

    def allows_any(self, call: Call, right: Right) -> bool:
        self.asked.append((right, "*"))
        return (right, "*") not in self._denied


def session(listener: str = LISTENER, authorizer: Authorizer | None = None) -> Session:
    return Session(listener, Peer("127.0.0.1", 50_000), client_id="asker", authorizer=authorizer)


def call(
    api: Api,
    version: int,
    correlation_id: int = 7,
    listener: str = LISTENER,
    authorizer: Authorizer | None = None,
) -> Call:
    return Call(session(listener, authorizer), api.key, version, correlation_id, "asker")
