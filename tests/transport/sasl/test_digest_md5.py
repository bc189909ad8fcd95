"""The client's part of DIGEST-MD5."""

import pytest

from moldau.transport.jaas import Login
from moldau.transport.sasl.digest_md5 import DigestMd5

URI = "imap/elwood.innosoft.com"
CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'


def test_the_exchange_is_that_of_the_example_in_rfc_2831() -> None:
    exchange = DigestMd5(Login("chris", "secret"), "OA6MHXh6VqTrRk", URI)
    assert b"response=d388dad90d4bbd760a152321f2143af7" in exchange.answer(CHALLENGE)
    assert exchange.is_proved_by(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")
    assert not exchange.is_proved_by(b"rspauth=ea40f60335c427b5527b84dbabcdfff0")
    assert not exchange.is_proved_by(b"")


def test_quotes_in_a_name_are_escaped() -> None:
    answer = DigestMd5(Login('a"\\b', "x"), "n", URI).answer(CHALLENGE)
    assert rb'username="a\"\\b"' in answer


@pytest.mark.parametrize(
    "challenge",
    [b"", b"\xff", b'realm="r"', CHALLENGE.replace(b"md5-sess", b"sha"), CHALLENGE.replace(b'"auth"', b'"auth-conf"')],
)
def test_what_is_no_challenge_is_not_answered(challenge: bytes) -> None:
    exchange = DigestMd5(Login("a", "b"), "n", URI)
    with pytest.raises(ValueError, match="not a challenge of DIGEST-MD5"):
        exchange.answer(challenge)
    assert not exchange.is_proved_by(b"rspauth=")
