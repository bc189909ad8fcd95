"""Damaged frames, SASL messages and tokens of every mechanism, in every order: each is answered or ends its connection,
nobody becomes anybody by them, and no secret gets into the log."""

import asyncio
import base64
import logging
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.tiers import LONG, examples, seed_or
from moldau.errors import ProtocolViolation
from moldau.handlers.security import sasl
from moldau.net.peer import Peer
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, APIS, HEARTBEAT, SASL_AUTHENTICATE, SASL_HANDSHAKE
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.heartbeat import HeartbeatResponse
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.requests.authentication import guarded
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate, Handler
from moldau.requests.logins import PLAIN_MODULE, ListenerLogins
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.transport.jaas import Login
from moldau.transport.sasl import scram
from moldau.transport.sasl.exchange import SaslFailed
from moldau.transport.sasl.plain import PlainClient
from moldau.transport.sasl.scram import Credential, NamedCredential, ScramClient
from moldau.turns import Turns
from tests.requests.test_logins import config
from tests.transport.issuing import AUDIENCE, ISSUER, Issuer, part

USER, PASSWORD = "alice", "the-password-of-alice"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ISSUERS, STRANGERS = Issuer("RSA", "EC"), Issuer("RSA")
SALT = b"0123456789"
TURN_S_MAX = 0.05


def token(chance: random.Random) -> str:
    """A token that is sound, of strangers, or built of parts that do not belong together."""
    sound = ISSUERS.token(exp=4_000_000_000, iat=None)
    kind = chance.randrange(6)
    if kind == 0:
        return sound
    if kind == 1:
        return STRANGERS.token(exp=4_000_000_000, iat=None)
    header, payload, signature = sound.split(".")
    if kind == 2:
        algorithm: object = chance.choice(["none", "HS256", "ES256", "RS1", "", 7, None, [], {"alg": "RS256"}])
        header = part({"alg": algorithm, "kid": chance.choice(["RSA-0", "EC-1", "../keys", 5, None])})
    elif kind == 3:
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "admin", "exp": chance.choice([4e9, "4e9", -1, 1e400, None])}
        payload = part(claims)
    elif kind == 4:
        payload = base64.urlsafe_b64encode(chance.choice([b"[" * 9000, b"9" * 9000, b"\xff\xfe", b"null"])).decode()
    else:
        return ".".join(chance.sample([header, payload, signature, "", "."], chance.randrange(6)))
    return f"{header}.{payload}.{signature}"


def changed(chance: random.Random, message: bytes) -> bytes:
    """Perhaps damaged."""
    data = bytearray(message)
    for _ in range(chance.choice((0, 0, 0, 1, 2, 5))):
        at, kind = chance.randrange(len(data) + 1), chance.randrange(3)
        if kind == 0:
            data[at : at + 1] = bytes([chance.choice((0, 1, 44, 61, 110, 255, chance.randrange(256)))])
        elif kind == 1:
            del data[at : at + chance.randrange(1, 9)]
        else:
            data[at:at] = chance.choice((b",", b"=", b"\0", b"\x01", b"a=", b"m=x,", b"p=", bytes(300), b"\xf0\x9f"))
    return bytes(data)


class Listener:
    """Connections of a listener with every mechanism; `principals` are those whose request got through."""

    def __init__(self, folder: Path):
        (folder / "keys.json").write_bytes(ISSUERS.published())
        logins = ListenerLogins(
            "CLIENTS",
            config(
                sasl_enabled_mechanisms=",".join(MECHANISMS),
                listener_name_clients_plain_sasl_jaas_config=f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}";',
                sasl_oauthbearer_jwks_endpoint_url=(folder / "keys.json").as_uri(),
                sasl_oauthbearer_expected_issuer=ISSUER,
                sasl_oauthbearer_expected_audience=AUDIENCE,
            ),
            Runtime(),
        )
        kept = {one: _credential(one) for one in MECHANISMS if one.startswith("SCRAM")}

        async def find(user: str, mechanism: str) -> Credential | None:
            return kept[mechanism] if user == USER else None

        async def find_token(token_id: str, mechanism: str) -> NamedCredential | None:
            return None

        logins.open(find, find_token, b"the secret of the cluster")
        self.principals: list[str] = []

        def heartbeat(request: object, call: Call) -> HeartbeatResponse:
            self.principals.append(call.session.principal)
            return HeartbeatResponse()

        def unserved(request: object, call: Call) -> object:
            raise ProtocolViolation("no request of this test")

        handlers: dict[int, Handler] = {
            **dict.fromkeys(APIS, unserved),
            SASL_HANDSHAKE.key: sasl.handshake,
            SASL_AUTHENTICATE.key: sasl.authenticate,
            API_VERSIONS.key: lambda request, call: ApiVersionsResponse(),
            HEARTBEAT.key: heartbeat,
        }
        dispatch = Dispatch(handlers, Gate(), Turns(Runtime()))
        self._connected = guarded(dispatch, {"CLIENTS": logins}, dispatch.connected)
        self.longest_s = 0.0

    def dial(self) -> "Dialler":
        return Dialler(self, self._connected(Peer("10.0.0.7", 5), "CLIENTS"))


class Dialler:
    def __init__(self, listener: Listener, handle: Callable[[memoryview], object]):
        self._listener = listener
        self._handle = handle

    async def send(self, frame: bytes) -> bytes | None:
        """The reply. Raises `ProtocolViolation` if the connection is closed."""
        began = time.thread_time()
        answer = self._handle(memoryview(bytearray(frame)))
        if isinstance(answer, Awaitable):
            answer = await answer
        self._listener.longest_s = max(self._listener.longest_s, time.thread_time() - began)
        return None if answer is None else b"".join(answer)  # type: ignore[arg-type]


async def converse(client: Dialler, chance: random.Random) -> None:
    """As a client that is hostile, or nearly sound. Raises `ProtocolViolation` when its connection is closed."""
    mechanism = chance.choice((*MECHANISMS, *MECHANISMS, "GSSAPI"))
    version = chance.randrange(2)
    await client.send(changed(chance, _frame(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))))
    login = Login(USER, PASSWORD if chance.random() < 0.7 else "guess")
    answer: Callable[[bytes], bytes | None]
    if mechanism == "OAUTHBEARER":
        said, answer = b"n,,\x01auth=Bearer " + token(chance).encode() + b"\x01\x01", lambda _: b"\x01"
    elif mechanism.startswith("SCRAM"):
        scramming = ScramClient(mechanism, login, "nonce")
        said, answer = scramming.first(), scramming.answer
    else:
        said, answer = PlainClient(login).first(), lambda _: b""
    for _ in range(3):
        message = changed(chance, said)
        if version:
            frame = _frame(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=message))
            reply = await client.send(frame if chance.random() < 0.8 else changed(chance, frame))
            heard = codec.read_reply(SASL_AUTHENTICATE, 2, reply[4:]).auth_bytes if reply else b""
        else:
            reply = await client.send(message)
            heard = reply[4:] if reply else b""
        if chance.random() < 0.1:
            await client.send(_frame(HEARTBEAT, 0, HEARTBEAT.request()))
        try:
            said = answer(heard) or b""
        except SaslFailed:
            said = chance.choice((b"", b"\x01", b"c=biws,r=nonce,p=" + base64.b64encode(bytes(32))))


def _credential(mechanism: str) -> Credential:
    return scram.credential(mechanism, SALT, 4096, scram.salted_password(mechanism, PASSWORD, SALT, 4096))


def _frame(api: object, version: int, request: object) -> bytes:
    return codec.write_request(api, version, 7, "test", request)[4:]  # type: ignore[arg-type]


@pytest.mark.timeout(1200)
def test_damaged_logins_and_tokens_are_refused_and_nothing_else_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, listener = random.Random(seed_or(38)), Listener(tmp_path)
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = self.format(record)
            if record.levelno >= logging.WARNING or PASSWORD in text or "Bearer" in text or "eyJ" in text:
                lines.append(text)

    handler, logger = Lines(), logging.getLogger("moldau")
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    logger.addHandler(handler)

    async def scenario() -> None:
        for _ in range(examples(300, 1000)):
            client = listener.dial()
            try:
                await converse(client, chance)
                await client.send(_frame(HEARTBEAT, 0, HEARTBEAT.request()))
            except ProtocolViolation:
                continue

    try:
        asyncio.run(scenario())
    finally:
        logger.removeHandler(handler)
    assert set(listener.principals) == {f"User:{USER}"}, "some are sound, and nobody else gets in"
    assert not lines
    assert not LONG or listener.longest_s < TURN_S_MAX
