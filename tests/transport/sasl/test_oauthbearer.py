"""OAUTHBEARER: the messages, tokens that are refused, hostile ends."""

import pytest

from moldau.transport.sasl.exchange import Authenticated, SaslFailed
from moldau.transport.sasl.oauthbearer import OauthbearerClient, OauthbearerServer, TokenRefused

from .exchanges import refusal, run

TOKEN = "eyJhbGciOiJub25lIn0.e30."


def server(told: list[str] | None = None) -> OauthbearerServer:
    def check(token: str) -> Authenticated:
        if token != TOKEN:
            raise TokenRefused("it has expired")
        return Authenticated("alice", 7_000)

    return OauthbearerServer(check, lambda error: None if told is None else told.append(str(error)))


def test_a_good_token_authenticates_its_user_until_it_expires() -> None:
    client = OauthbearerClient(TOKEN, {"logicalCluster": "lkc-1"})
    assert client.first() == b"n,,\x01auth=Bearer " + TOKEN.encode() + b"\x01logicalCluster=lkc-1\x01\x01"
    assert run(client, server()) == Authenticated("alice", 7_000)


def test_a_refused_token_ends_in_the_server_s_status_and_the_reason_stays_with_the_server() -> None:
    told: list[str] = []
    client, exchange = OauthbearerClient("abc"), server(told)
    answer = exchange.answer(client.first())
    assert answer == b'{"status":"invalid_token"}'
    last = client.answer(answer)
    assert last == b"\x01"
    with pytest.raises(SaslFailed, match="invalid_token"):
        exchange.answer(last)
    with pytest.raises(SaslFailed, match="invalid_token"):
        client.answer(b"")
    assert told == ["it has expired"]


def test_a_token_does_not_authorize_another_user() -> None:
    exchange = server()
    assert b"invalid_token" in exchange.answer(b"n,a=bob,\x01auth=Bearer " + TOKEN.encode() + b"\x01\x01")
    assert exchange.authenticated is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,\x01auth=Bearer abc\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01x\x01\x01",
        b"n,,\x01auth=Bearer a c\x01\x01",
        b"n,b,\x01auth=Bearer abc\x01\x01",
        b"n,,x,\x01auth=Bearer abc\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01\x01\x01",
        b"\xff",
        b"n,,\x01auth=Bearer " + b"a" * (1 << 19) + b"\x01\x01",
    ],
)
def test_a_message_that_is_not_one_is_refused(message: bytes) -> None:
    with pytest.raises(SaslFailed):
        server().answer(message)


@pytest.mark.parametrize("answer", [b"{", b"[" * 5000, b'{"status":7}', b"\xff", b'{"status":"\\u001b[2J"}'])
def test_a_hostile_refusal_is_a_failure_with_a_plain_sentence(answer: bytes) -> None:
    client = OauthbearerClient("abc")
    assert client.answer(answer) == b"\x01"
    with pytest.raises(SaslFailed, match="it says nothing more"):
        client.answer(b"")


def test_a_client_refuses_what_the_message_cannot_carry() -> None:
    for token, extensions in (("a b", None), ("", None), ("a", {"auth": "x"}), ("a", {"b": "\x01"}), ("a", {"1": "x"})):
        with pytest.raises(ValueError, match="OAUTHBEARER"):
            OauthbearerClient(token, extensions)


def test_both_ends_together_refuse_a_bad_token() -> None:
    assert "invalid_token" in refusal(OauthbearerClient("abc"), server())
