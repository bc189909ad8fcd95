"""How a connection of a listener with SASL authenticates: before, during and after it.

    HANDSHAKE      ApiVersions and SaslHandshake are answered, and nothing else
    AUTHENTICATE   SaslAuthenticate, as often as the mechanism needs it; another SaslHandshake fails
    TOKENS         the same without headers, after version 0 of SaslHandshake: the messages are frames by themselves
    DONE           every API; SaslHandshake begins to authenticate again
    FAILED         the connection is about to be closed

Any other request closes the connection. A client that fails hears why when it is closed, which is
`connection.failed.authentication.delay.ms` later, so that nobody tries passwords quickly. A connection that has not
authenticated is closed after some time, and until then its frames are limited to `sasl.server.max.receive.size`.

A session ends with the credential that began it (a token), or `connections.max.reauth.ms` after it. A client is told
so, and authenticates again in time as the same user; after the end any other request closes its connection. Sources:
KIP-43, KIP-152, KIP-368.
"""

import asyncio
import enum
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from moldau.errors import ErrorCode, ProtocolViolation, StorageError
from moldau.names import NOBODY
from moldau.net.guard import Guarded
from moldau.net.peer import Peer
from moldau.net.ports import Connected, Handle
from moldau.notices import Notices
from moldau.protocol.apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from moldau.protocol.codec import request_name
from moldau.replies import Answer, Muting, Reply, Unanswered
from moldau.requests.dispatch import Dispatch
from moldau.requests.session import Session
from moldau.transport.sasl.exchange import Authenticated, SaslFailed

AGAIN_MS = 1_000
"""A client may begin to authenticate again this long after it has begun before."""
GRACE_S = 0.2
_HANDSHAKE, _AUTHENTICATE, _VERSIONS = (
    api.key.to_bytes(2, "big") for api in (SASL_HANDSHAKE, SASL_AUTHENTICATE, API_VERSIONS)
)
notices = Notices(logging.getLogger(__name__))


class ServerLogin(Protocol):
    """One exchange on a connection."""

    @property
    def authenticated(self) -> Authenticated | None: ...

    def answer(self, message: bytes) -> bytes | Awaitable[bytes]:
        """What is sent after that message of the client. Raises `SaslFailed`, `StorageError`; an awaitable does too."""


class Logins(Protocol):
    """How the clients of one listener log in."""

    @property
    def mechanisms(self) -> tuple[str, ...]: ...
    @property
    def receive_bytes_max(self) -> int: ...
    @property
    def failure_delay_ms(self) -> int: ...
    @property
    def timeout_ms(self) -> int: ...
    def begin(self, mechanism: str) -> ServerLogin: ...
    def session_ms(self, mechanism: str) -> int:
        """The longest time until a client has to authenticate again; 0 for no limit."""

    def now_ms(self) -> int: ...
    def elapsed_ms(self) -> int:
        """By a clock that never jumps: an hour that the wall clock is set back must not lengthen a session."""


class SaslStage(enum.Enum):
    """See above."""

    HANDSHAKE = enum.auto()
    AUTHENTICATE = enum.auto()
    TOKENS = enum.auto()
    DONE = enum.auto()
    FAILED = enum.auto()


_ANSWERED = {SaslStage.HANDSHAKE: (_HANDSHAKE, _VERSIONS), SaslStage.AUTHENTICATE: (_AUTHENTICATE, _HANDSHAKE)}


class Authenticating(NamedTuple):
    """The answer to one message of the client."""

    error: ErrorCode
    message: str | None
    answer: bytes
    session_ms: int = 0


class Authentication:
    """The state of one connection."""

    def __init__(self, session: Session, logins: Logins):
        self.logins = logins
        self.stage = SaslStage.HANDSHAKE
        self.expires_ms: int | None = None
        self._session = session
        self._mechanism = ""
        self._login: ServerLogin | None = None
        self._user: Authenticated | None = None
        self._begun_ms: int | None = None

    @property
    def has_authenticated(self) -> bool:
        """Whether it has at least once."""
        return self._user is not None

    @property
    def by_token(self) -> bool:
        """Whether a delegation token has proved who its user is."""
        return self._user is not None and self._user.by_token

    def handshake(self, mechanism: str, version: int) -> ErrorCode:
        """The client wants to authenticate by that mechanism."""
        logins, is_again = self.logins, self._user is not None
        if self.stage is SaslStage.AUTHENTICATE:
            self._failed("it begins to authenticate twice")
            return ErrorCode.ILLEGAL_SASL_STATE
        if is_again:
            now_ms = logins.elapsed_ms()
            is_soon = self._begun_ms is not None and now_ms - self._begun_ms < AGAIN_MS
            if self.expires_ms is None or is_soon:
                return ErrorCode.ILLEGAL_SASL_STATE
            self._begun_ms = now_ms
        if mechanism not in logins.mechanisms:
            self._failed(f"it asks for the SASL mechanism {mechanism[:60]!r}, which is not enabled")
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        # A client that authenticates again by another mechanism is refused with its first message.
        self._login = logins.begin(mechanism) if not is_again or mechanism == self._mechanism else None
        self._mechanism = self._mechanism or mechanism
        self.stage = SaslStage.AUTHENTICATE if version else SaslStage.TOKENS
        return ErrorCode.NONE

    def authenticate(self, message: bytes) -> Authenticating | Awaitable[Authenticating]:
        """The client's next message. Raises `ProtocolViolation` if the user cannot be looked up now."""
        if self.stage not in (SaslStage.AUTHENTICATE, SaslStage.TOKENS):
            return Authenticating(
                ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication", b""
            )
        if self._login is None:
            return self._refused("a client authenticates again by the mechanism that it has used before")
        try:
            answer = self._login.answer(message)
        except SaslFailed as failed:
            return self._refused(str(failed))
        return self._answered(self._login, answer) if isinstance(answer, bytes) else self._later(self._login, answer)

    async def _later(self, login: ServerLogin, answer: Awaitable[bytes]) -> Authenticating:
        try:
            return self._answered(login, await answer)
        except SaslFailed as failed:
            return self._refused(str(failed))
        except StorageError as error:
            notices.error("", "users cannot be looked up, so clients cannot authenticate: %s", error)
            raise ProtocolViolation("its user cannot be looked up now") from None

    def _answered(self, login: ServerLogin, answer: bytes) -> Authenticating:
        found = login.authenticated
        if found is None:
            return Authenticating(ErrorCode.NONE, None, answer)
        if found.user == NOBODY:
            return self._refused(f"{NOBODY} is the name of clients that have not authenticated, and of no user")
        if self._user is not None and found.user != self._user.user:
            return self._refused("a client authenticates again as the user that it was before")
        logins = self.logins
        self._user, self._login, self.stage = found, None, SaslStage.DONE
        self._session.become(f"User:{found.user}")
        longest_ms = logins.session_ms(self._mechanism)
        left_ms = [longest_ms] if longest_ms > 0 else []
        if found.expires_ms is not None:
            left_ms.append(max(found.expires_ms - logins.now_ms(), 0))
        self.expires_ms = logins.elapsed_ms() + min(left_ms) if left_ms else None
        return Authenticating(ErrorCode.NONE, None, answer, min(left_ms, default=0))

    def _refused(self, why: str) -> Authenticating:
        self._failed(why)
        return Authenticating(ErrorCode.SASL_AUTHENTICATION_FAILED, why, b"")

    def _failed(self, why: str) -> None:
        self.stage, self._login = SaslStage.FAILED, None
        host = self._session.peer.host
        notices.info(host, "a client at %s has not authenticated: %s", self._session.peer, why)


class SaslGuard:
    """Answers the frames of one connection; `requests` does where they are allowed."""

    def __init__(self, requests: Handle, authentication: Authentication):
        self._requests = requests
        self._state = authentication
        self._connection: Guarded | None = None
        self._usual_bytes_max = 0

    def guard(self, connection: Guarded) -> None:
        """See `net.accepted.Guard`."""
        logins = self._state.logins
        self._connection = connection
        self._usual_bytes_max = connection.inbox.size_max
        connection.inbox.size_max = min(logins.receive_bytes_max, self._usual_bytes_max)
        # Weak: a connection that is gone before does not stay for as long.
        asyncio.get_running_loop().call_later(logins.timeout_ms / 1000, _end_slow, weakref.ref(self))

    def end_slow(self) -> None:
        """The time to authenticate is over."""
        if self._connection is not None and not self._state.has_authenticated:
            self._connection.lose("it has not authenticated in time")

    def __call__(self, frame: memoryview) -> Answer:
        """Raises `ProtocolViolation`."""
        state = self._state
        key = frame[:2]
        if state.stage is SaslStage.DONE:
            if key != _HANDSHAKE:
                if state.expires_ms is not None and state.logins.elapsed_ms() >= state.expires_ms:
                    raise ProtocolViolation("its session has expired, and it has not authenticated again")
                return self._requests(frame)
        elif state.stage is SaslStage.TOKENS:
            token = bytes(frame)
            frame[:] = bytes(len(frame))  # it has no header, and would be named in the log by what it begins with
            return self._token(token)
        elif bytes(key) not in _ANSWERED.get(state.stage, ()):
            raise ProtocolViolation(f"{request_name(frame)}, before it has authenticated")
        answer = self._requests(frame)
        if isinstance(answer, Awaitable):
            return self._later(answer)
        return self._closing(answer) if state.stage is SaslStage.FAILED else self._open(answer)

    def _open(self, answer: Reply | Muting | Unanswered) -> Reply | Muting | Unanswered:
        if self._state.stage is SaslStage.DONE and self._connection is not None:
            self._connection.inbox.size_max = self._usual_bytes_max
        return answer

    async def _later(self, answer: Awaitable[Reply | Muting | Unanswered]) -> Reply | Muting | Unanswered:
        answered = await answer
        return await self._closing(answered) if self._state.stage is SaslStage.FAILED else self._open(answered)

    async def _closing(self, answer: Reply | Muting | Unanswered) -> Reply | Muting | Unanswered:
        """The client reads the reply, and closes; one that does not is closed a little later. Closed at once, some
        clients would see the end before the reply."""
        await asyncio.sleep(self._state.logins.failure_delay_ms / 1000)
        if self._connection is not None:
            asyncio.get_running_loop().call_later(GRACE_S, self._connection.finish)
        return answer

    async def _token(self, token: bytes) -> Reply | Muting | Unanswered:
        """A message without a header; a client that fails is closed without a word."""
        outcome = self._state.authenticate(token)
        if isinstance(outcome, Awaitable):
            outcome = await outcome
        if outcome.error:
            return await self._closing(None)
        self._open(None)
        return [len(outcome.answer).to_bytes(4, "big") + outcome.answer]


def _end_slow(guard: "weakref.ref[SaslGuard]") -> None:
    alive = guard()
    if alive is not None:
        alive.end_slow()


def guarded(dispatch: Dispatch, logins: Mapping[str, Logins], others: Connected) -> Callable[[Peer, str], Handle]:
    """What answers the frames of a new connection: of a listener that has `logins`, by its name, only after it has
    authenticated. `others` answers those of all other listeners."""

    def connected(peer: Peer, listener: str) -> Handle:
        of_listener = logins.get(listener)
        if of_listener is None:
            return others(peer, listener)
        session = Session(listener, peer, authorizer=dispatch.gate.authorizer)
        session.sasl = Authentication(session, of_listener)
        return SaslGuard(dispatch.requests_of(session), session.sasl)

    return connected
