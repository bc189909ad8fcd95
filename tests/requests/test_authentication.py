"""A connection before, while and after it authenticates."""

import asyncio
import random
import struct
from collections.abc import Awaitable
from typing import Any

import pytest

from harness.tiers import sized
from moldau.errors import StorageError
from moldau.net.peer import Peer
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, HEARTBEAT, SASL_AUTHENTICATE, SASL_HANDSHAKE
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.requests.authentication import Authentication, SaslGuard
from moldau.requests.session import Session
from moldau.transport.sasl.exchange import Authenticated

from .saslsided import ALICE, BOB, Expiring, TwoUsers, play

FAILED, ILLEGAL, UNSUPPORTED = 58, 34, 33


def test_a_user_that_has_logged_in_is_answered_under_its_name() -> None:
    logins = TwoUsers()

    async def scenario(dial: Any) -> None:
        client = await dial()
        assert (await client.ask(API_VERSIONS, 0, API_VERSIONS.request())).error_code == 0
        answer = await client.log_in()
        assert (answer.error_code, answer.error_message, answer.session_lifetime_ms) == (0, "", 0)
        await client.heartbeat()
        assert logins.principals == ["User:alice"]

    play(scenario, logins)


@pytest.mark.parametrize("after", ["nothing", "handshake"])
def test_a_request_before_that_closes_the_connection_and_reaches_no_handler(after: str) -> None:
    logins = TwoUsers()

    async def scenario(dial: Any) -> None:
        client = await dial()
        if after == "handshake":
            await client.handshake()
        client.writer.write(codec.write_request(HEARTBEAT, 0, 7, "test", HEARTBEAT.request()))
        assert await client.is_closed()
        assert logins.principals == []

    play(scenario, logins)


@pytest.mark.parametrize("frames", [b"", b"\0", b"\0\x24", b"\0\x11\0\x09" + bytes(20), b"\xff" * 40])
def test_what_is_no_request_closes_the_connection(frames: bytes) -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        client.writer.write(struct.pack(">i", len(frames)) + frames)
        assert await client.is_closed()

    play(scenario)


def test_a_token_before_the_handshake_closes_the_connection() -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        request = SaslAuthenticateRequest(auth_bytes=ALICE)
        client.writer.write(codec.write_request(SASL_AUTHENTICATE, 2, 7, "test", request))
        assert await client.is_closed()

    play(scenario)


def test_an_unknown_mechanism_is_answered_with_those_that_are_enabled_and_the_end() -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        answer = await client.handshake("GSSAPI")
        assert (answer.error_code, answer.mechanisms) == (UNSUPPORTED, ["PLAIN", "OTHER"])
        assert await client.is_closed()

    play(scenario)


def test_a_wrong_password_is_answered_with_a_sentence_and_the_end() -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        answer = await client.log_in(b"\0alice\0guess")
        assert answer.error_code == FAILED
        assert answer.error_message == "Authentication failed: Invalid username or password"
        assert await client.is_closed()

    play(scenario)


def test_nobody_logs_in_as_those_that_have_not() -> None:
    logins = TwoUsers(make=lambda: Expiring(None, {"ANONYMOUS": "secret"}))

    async def scenario(dial: Any) -> None:
        client = await dial()
        answer = await client.log_in(b"\0ANONYMOUS\0secret")
        assert answer.error_code == FAILED and "have not authenticated" in answer.error_message
        assert await client.is_closed()

    play(scenario, logins)


def test_a_client_that_fails_waits_before_it_hears_so() -> None:
    async def scenario(dial: Any) -> None:
        loop, client = asyncio.get_running_loop(), await dial()
        began = loop.time()
        await client.log_in(b"\0alice\0guess")
        assert loop.time() - began >= 0.19

    play(scenario, TwoUsers(failure_delay_ms=200))


def test_a_client_that_fails_is_asked_nothing_more() -> None:
    logins = TwoUsers(failure_delay_ms=50)

    async def scenario(dial: Any) -> None:
        client = await dial()
        await client.handshake()
        request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess")
        client.writer.write(codec.write_request(SASL_AUTHENTICATE, 2, 7, "test", request))
        client.writer.write(codec.write_request(HEARTBEAT, 0, 8, "test", HEARTBEAT.request()))
        assert (codec.read_reply(SASL_AUTHENTICATE, 2, await client.frame())).error_code == FAILED
        assert await client.is_closed()
        assert logins.principals == []

    play(scenario, logins)


def test_version_0_of_the_handshake_is_followed_by_messages_without_headers() -> None:
    logins = TwoUsers()

    async def scenario(dial: Any) -> None:
        client = await dial()
        assert (await client.handshake(version=0)).error_code == 0
        client.writer.write(struct.pack(">i", len(BOB)) + BOB)
        assert await client.frame() == b""
        await client.heartbeat()
        assert logins.principals == ["User:bob"]
        refused = await dial()
        await refused.handshake(version=0)
        refused.writer.write(struct.pack(">i", 3) + b"\0b\0")
        assert await refused.is_closed()

    play(scenario, logins)


def test_a_message_without_a_header_is_wiped_from_the_buffer_that_a_log_line_would_name_it_by() -> None:
    async def scenario() -> None:
        logins = TwoUsers()
        session = Session("SASL", Peer("127.0.0.1", 1))
        session.sasl = state = Authentication(session, logins)
        state.handshake("PLAIN", 0)
        frame = memoryview(bytearray(ALICE))
        answer = SaslGuard(lambda _: None, state)(frame)
        assert not any(frame)
        assert isinstance(answer, Awaitable) and await answer == [bytes(4)]

    asyncio.run(scenario())


def test_large_frames_are_refused_before_and_taken_after() -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        client.writer.write(struct.pack(">i", 1_001))
        assert await client.is_closed()
        client = await dial()
        await client.log_in()
        request = HEARTBEAT.request(group_id="g" * 2_000)
        assert (await client.ask(HEARTBEAT, 0, request)).error_code == 0

    play(scenario)


def test_a_connection_that_does_not_authenticate_in_time_is_closed() -> None:
    async def scenario(dial: Any) -> None:
        slow, quick = await dial(), await dial()
        await quick.log_in()
        await slow.handshake()
        assert await slow.is_closed()
        assert (await quick.heartbeat()).error_code == 0

    play(scenario, TwoUsers(timeout_ms=300))


def test_sasl_is_out_of_place_on_a_listener_without_it_and_after_authentication() -> None:
    async def scenario(dial: Any) -> None:
        plain = await dial("PLAINTEXT")
        assert (await plain.handshake()).error_code == ILLEGAL
        assert (await plain.authenticate()).error_code == ILLEGAL
        client = await dial()
        await client.log_in()
        assert (await client.authenticate()).error_code == ILLEGAL
        assert (await client.handshake()).error_code == ILLEGAL
        assert (await client.heartbeat()).error_code == 0

    play(scenario)


@pytest.mark.parametrize(
    ("longest_ms", "expires_ms", "told_ms"),
    [(0, None, 0), (5_000, None, 5_000), (0, 1_003_000, 3_000), (5_000, 1_003_000, 3_000), (2_000, 1_003_000, 2_000)],
)
def test_a_client_is_told_how_long_it_is_authenticated(longest_ms: int, expires_ms: int | None, told_ms: int) -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        assert (await client.log_in()).session_lifetime_ms == told_ms

    play(scenario, TwoUsers(longest_ms=longest_ms, expires_ms=expires_ms))


def test_an_expired_session_is_closed_at_the_next_request_and_one_begun_again_goes_on() -> None:
    logins = TwoUsers(longest_ms=5_000)

    async def scenario(dial: Any) -> None:
        again, lazy = await dial(), await dial()
        await again.log_in()
        await lazy.log_in()
        logins.now += 4_999
        assert (await lazy.heartbeat()).error_code == 0
        assert (await again.log_in()).session_lifetime_ms == 5_000
        logins.now += 1
        lazy.writer.write(codec.write_request(HEARTBEAT, 0, 8, "test", HEARTBEAT.request()))
        assert await lazy.is_closed()
        assert (await again.heartbeat()).error_code == 0

    play(scenario, logins)


def test_an_expired_session_may_begin_again() -> None:
    logins = TwoUsers(longest_ms=5_000)

    async def scenario(dial: Any) -> None:
        client = await dial()
        await client.log_in()
        logins.now += 100_000
        await client.log_in()
        assert (await client.heartbeat()).error_code == 0

    play(scenario, logins)


def test_a_wall_clock_that_is_set_back_lengthens_no_session_and_keeps_nobody_from_the_next() -> None:
    logins = TwoUsers(longest_ms=5_000)

    async def scenario(dial: Any) -> None:
        again, lazy = await dial(), await dial()
        await lazy.log_in()
        await again.log_in()
        await again.log_in()
        logins.set_back_ms = 3_600_000
        logins.now += 5_000
        assert (await again.log_in()).session_lifetime_ms == 5_000
        lazy.writer.write(codec.write_request(HEARTBEAT, 0, 8, "test", HEARTBEAT.request()))
        assert await lazy.is_closed()
        assert (await again.heartbeat()).error_code == 0

    play(scenario, logins)


def test_nobody_authenticates_again_twice_in_a_second() -> None:
    logins = TwoUsers(longest_ms=5_000)

    async def scenario(dial: Any) -> None:
        client = await dial()
        await client.log_in()
        await client.log_in()
        assert (await client.handshake()).error_code == ILLEGAL
        logins.now += 1_000
        await client.log_in()

    play(scenario, logins)


@pytest.mark.parametrize(("mechanism", "message"), [("PLAIN", BOB), ("OTHER", ALICE), ("PLAIN", b"\0alice\0guess")])
def test_nobody_becomes_another_user_by_authenticating_again(mechanism: str, message: bytes) -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        await client.log_in()
        assert (await client.handshake(mechanism)).error_code == 0
        assert (await client.authenticate(message)).error_code == FAILED
        assert await client.is_closed()

    play(scenario, TwoUsers(longest_ms=5_000))


def test_other_requests_while_a_client_authenticates_again_close_the_connection() -> None:
    async def scenario(dial: Any) -> None:
        client = await dial()
        await client.log_in()
        await client.handshake()
        client.writer.write(codec.write_request(HEARTBEAT, 0, 8, "test", HEARTBEAT.request()))
        assert await client.is_closed()

    play(scenario, TwoUsers(longest_ms=5_000))


def test_a_store_that_cannot_be_read_closes_the_connection_and_is_no_wrong_password() -> None:
    class Unreadable:
        authenticated: Authenticated | None = None

        async def answer(self, message: bytes) -> bytes:
            raise StorageError("the store is away")

    async def scenario(dial: Any) -> None:
        client = await dial()
        await client.handshake()
        request = SaslAuthenticateRequest(auth_bytes=ALICE)
        client.writer.write(codec.write_request(SASL_AUTHENTICATE, 2, 7, "test", request))
        assert await client.is_closed()

    play(scenario, TwoUsers(make=Unreadable))


def test_hostile_frames_only_ever_close_their_connection(caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(38)
    logins = TwoUsers()
    sound = (
        codec.write_request(SASL_HANDSHAKE, 1, 7, "test", SaslHandshakeRequest(mechanism="PLAIN")),
        codec.write_request(SASL_AUTHENTICATE, 2, 7, "test", SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess")),
    )

    async def scenario(dial: Any) -> None:
        for _ in range(sized(50, 500, 20_000)):
            client = await dial()
            for frame in sound[chance.randrange(2) :]:
                changed = bytearray(frame)
                for _ in range(chance.randrange(1, 4)):
                    changed[chance.randrange(len(changed))] = chance.randrange(256)
                client.writer.write(changed)
            client.writer.write_eof()
            await client.reader.read()
        assert (await (await dial()).log_in()).error_code == 0

    play(scenario, logins)
    assert logins.principals == []
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_no_secret_is_in_the_text_of_a_message() -> None:
    assert "guess" not in repr(SaslAuthenticateRequest(auth_bytes=b"guess"))
