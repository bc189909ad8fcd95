"""SCRAM: the examples of the RFCs, refusals that tell nothing, bounds on both ends."""

import random

import pytest

from harness.tiers import sized
from moldau.transport.jaas import Login
from moldau.transport.sasl import scram
from moldau.transport.sasl.exchange import Authenticated, SaslFailed, from_base64
from moldau.transport.sasl.scram import Credential, NamedCredential, ScramClient, ScramServer

from .exchanges import refusal, run

SHA256, SHA512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
SALT = from_base64("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE, MORE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
PROOF = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
LAST = b"c=biws,r=" + (NONCE + MORE).encode() + b",p=" + PROOF
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def made(mechanism: str, password: str, salt: bytes = SALT, iterations: int = 4096) -> Credential:
    salted = scram.salted_password(mechanism, password, salt, iterations)
    return scram.credential(mechanism, salt, iterations, salted)


KEPT = {mechanism: made(mechanism, "pencil") for mechanism in (SHA256, SHA512)}


def server(mechanism: str = SHA256, nonce: str = MORE, user: str = "user") -> ScramServer:
    def find(name: str, by_token: bool) -> NamedCredential | None:
        if by_token:
            return (
                NamedCredential(KEPT[mechanism], Authenticated("owner", 5_000, by_token=True))
                if name == "token-id"
                else None
            )
        return NamedCredential(KEPT[mechanism], Authenticated(name)) if name == user else None

    return ScramServer(mechanism, find, nonce, b"secret of the cluster")


def client(user: str = "user", password: str = "pencil", mechanism: str = SHA256) -> ScramClient:
    return ScramClient(mechanism, Login(user, password), NONCE)


def test_both_ends_say_what_the_example_in_rfc_7677_says() -> None:
    one, other = client(), server()
    first = other.answer(one.first())
    assert one.first() == f"n,,n=user,r={NONCE}".encode()
    assert first == f"r={NONCE}{MORE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    assert one.answer(first) == LAST
    assert other.answer(LAST) == SIGNATURE
    assert one.answer(SIGNATURE) is None
    assert other.authenticated == Authenticated("user")


@pytest.mark.parametrize("mechanism", [SHA256, SHA512])
@pytest.mark.parametrize("user", ["user", "a=b,c", "jürgen", "=2C"])
def test_any_name_is_authenticated_under_itself(mechanism: str, user: str) -> None:
    assert run(client(user, mechanism=mechanism), server(mechanism, user=user)).user == user


def test_an_unknown_user_and_a_wrong_password_take_the_same_steps_and_are_refused_alike() -> None:
    wrong = refusal(client(password="pen"), server())
    assert wrong == refusal(client("nobody"), server())
    assert "user" not in wrong
    known, unknown = (server().answer(client(name).first()) for name in ("user", "nobody"))
    assert [part[:2] for part in known.split(b",")] == [part[:2] for part in unknown.split(b",")]
    asked = {server().answer(client(f"nobody {n}").first()).rpartition(b",")[2] for n in range(20)}
    assert known.rpartition(b",")[2] == b"i=4096" and asked == {b"i=4096", b"i=8192"}


def test_an_unknown_user_has_the_same_salt_each_time_and_another_one_under_another_name() -> None:
    def salt(name: str, nonce: str) -> bytes:
        return server(nonce=nonce).answer(client(name).first()).split(b",")[1]

    assert salt("nobody", "1") == salt("nobody", "2") != salt("noone", "1")


def test_a_token_authenticates_its_owner_and_is_no_user() -> None:
    by_token = ScramClient(SHA256, Login("token-id", "pencil"), NONCE, by_token=True)
    assert run(by_token, server()) == Authenticated("owner", 5_000, by_token=True)
    refusal(client("token-id"), server())
    refusal(ScramClient(SHA256, Login("user", "pencil"), NONCE, by_token=True), server())


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,r=abc",
        b"n,,n=,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=root,n=user,r=abc",
        b"n,,m=x,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,n=root,r=abc",
        b"n,,n=user,r=" + b"a" * 257,
        b"n,,n=user,r=\xc3\xa4",
        b"n,,n=" + b"a" * 2000 + b",r=abc",
        b"\xff",
        b"n,,n=user,r=a" * 2000,
    ],
)
def test_a_first_message_that_is_not_one_is_refused(first: bytes) -> None:
    with pytest.raises(SaslFailed):
        server().answer(first)


@pytest.mark.parametrize(
    "last",
    [
        b"",
        LAST.replace(b"biws", b"eSws"),
        LAST.replace(b"%hv", b"%hx"),
        LAST.replace(b"dHz", b"dHx"),
        LAST.replace(PROOF, b""),
        LAST.replace(PROOF, b"===="),
        LAST.replace(PROOF, b"YWJj"),
        LAST + b",x=1",
        LAST.partition(b",p=")[0],
    ],
)
def test_a_last_message_that_proves_nothing_is_refused(last: bytes) -> None:
    exchange = server()
    exchange.answer(client().first())
    with pytest.raises(SaslFailed):
        exchange.answer(last)
    assert exchange.authenticated is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"e=unknown-user",
        b"r=%s,s=YWJj,i=4095",
        b"r=%s,s=YWJj,i=1000001",
        b"r=%s,s=YWJj,i=-1",
        b"r=%s,s=YWJj,i=" + b"9" * 5000,
        b"r=%s,s=,i=4096",
        b"r=%s,s=a b,i=4096",
        b"m=x,r=%s,s=YWJj,i=4096",
        b"r=other,s=YWJj,i=4096",
        b"r=" + NONCE.encode() + b",s=YWJj,i=4096",
        b"r=%s,s=" + b"YWJj" * 400 + b",i=4096",
    ],
)
def test_a_client_refuses_a_hostile_server_before_it_works(first: bytes) -> None:
    with pytest.raises(SaslFailed):
        client().answer(first.replace(b"%s", (NONCE + MORE).encode()))


@pytest.mark.parametrize("last", [b"", b"v=", b"v=YWJj", b"e=other-error", SIGNATURE.replace(b"6rr", b"6rs")])
def test_a_client_refuses_a_server_that_does_not_know_the_password(last: bytes) -> None:
    one = client()
    one.answer(server().answer(one.first()))
    with pytest.raises(SaslFailed):
        one.answer(last)


def test_changed_messages_only_ever_fail_as_such() -> None:
    """A fuzz: every outcome other than `SaslFailed` is a fault."""
    chance = random.Random(38)
    sound = client().first(), LAST
    for _ in range(sized(1_000, 5_000, 40_000)):
        exchange = server()
        for message in sound:
            changed = bytearray(message)
            for _ in range(chance.randrange(3)):
                changed[chance.randrange(len(changed))] = chance.choice(b"=,\0\xffnar09")
            try:
                exchange.answer(bytes(changed))
            except SaslFailed:
                break
            if changed != message:
                assert exchange.authenticated is None or exchange.authenticated.user == "user"


def test_no_key_is_in_the_text_of_a_credential() -> None:
    assert repr(KEPT[SHA256]) == "Credential(iterations=4096)"
