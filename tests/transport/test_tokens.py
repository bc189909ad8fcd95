"""Tokens: who they are of, and everything that makes them of no use."""

import hashlib
import hmac
import json
import math
import random
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jwk

from harness.tiers import sized
from moldau.transport.sasl.exchange import Authenticated
from moldau.transport.sasl.oauthbearer import TokenRefused
from moldau.transport.tokens import TokenRules, UnknownKey, check_token, read_keys

from .issuing import AUDIENCE, CLAIMS, ISSUER, NOW_S, Issuer, part

RULES = TokenRules(ISSUER, (AUDIENCE, "other"), 30, "sub", "scope")
ISSUERS = Issuer("RSA", "EC")
KEYS = read_keys(ISSUERS.published())


def check(token: str, rules: TokenRules = RULES, now_s: float = NOW_S) -> Authenticated:
    return check_token(token, KEYS, rules, round(now_s * 1000))


def why(token: str, rules: TokenRules = RULES, now_s: float = NOW_S) -> str:
    with pytest.raises(TokenRefused) as refused:
        check(token, rules, now_s)
    assert not isinstance(refused.value, UnknownKey)
    return str(refused.value)


@pytest.mark.parametrize("key_id", ISSUERS.keys)
@pytest.mark.parametrize("header", [{}, {"kid": None}, {"x5t": "abc", "more": 7, "typ": "at+jwt"}])
def test_a_token_of_the_issuer_for_this_broker_is_its_user_s_until_it_ends(key_id: str, header: dict[str, Any]) -> None:
    assert check(ISSUERS.token(key_id, header)) == Authenticated("alice", (NOW_S + 600) * 1000)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["x", "other"]},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"exp": NOW_S - 29},
        {"nbf": NOW_S + 30},
        {"iat": None},
        {"exp": NOW_S + 600.5},
    ],
)
def test_what_a_token_may_say(claims: dict[str, Any]) -> None:
    assert check(ISSUERS.token(**claims)).user == "alice"


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"iss": "https://other"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"iss": [ISSUER]}, "another issuer"),
        ({"aud": "someone"}, "for none of"),
        ({"aud": None}, "for none of"),
        ({"aud": {AUDIENCE: 1}}, "for none of"),
        ({"exp": None}, "has expired, or does not say"),
        ({"exp": NOW_S - 30}, "has expired"),
        ({"exp": str(NOW_S + 600)}, "claim exp is not a time"),
        ({"exp": True}, "claim exp is not a time"),
        ({"exp": math.inf}, "claim exp is not a time"),
        ({"exp": math.nan}, "claim exp is not a time"),
        ({"exp": 1 << 70}, "claim exp is not a time"),
        ({"exp": 10**400}, "claim exp is not a time"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"iat": NOW_S + 31}, "not valid yet"),
        ({"sub": None}, "claim sub is not the name"),
        ({"sub": ""}, "claim sub is not the name"),
        ({"sub": "a\nb"}, "claim sub is not the name"),
        ({"sub": 7}, "claim sub is not the name"),
        ({"sub": "a" * 2000}, "claim sub is not the name"),
        ({"scope": 7}, "claim scope is not a list"),
    ],
)
def test_a_token_that_says_something_else_is_refused(claims: dict[str, Any], sentence: str) -> None:
    assert sentence in why(ISSUERS.token(**claims))


def test_the_claims_of_user_and_scope_may_have_other_names() -> None:
    rules = RULES._replace(user_claim="client_id", scope_claim="scp")
    assert check(ISSUERS.token(client_id="bob", scp=["a"], scope=7), rules).user == "bob"
    assert "client_id" in why(ISSUERS.token(), rules)


def test_a_token_without_a_signature_or_by_a_shared_secret_is_refused() -> None:
    claims = part(CLAIMS)
    assert "not signed by one of" in why(f"{part({'alg': 'none'})}.{claims}.")
    signed = f"{part({'alg': 'HS256', 'kid': 'RSA-0'})}.{claims}"
    secret = ISSUERS.keys["RSA-0"].as_pem(private=False)
    mac = urlsafe_b64encode(hmac.digest(secret, signed.encode(), hashlib.sha256)).rstrip(b"=").decode()
    assert "not signed by one of" in why(f"{signed}.{mac}")


def test_a_key_signs_by_algorithms_of_its_own_type_only() -> None:
    header, claims, signature = ISSUERS.token("RSA-0").split(".")
    with pytest.raises(UnknownKey):
        check(f"{part({'alg': 'ES256', 'kid': 'RSA-0'})}.{claims}.{signature}")
    assert "signature is wrong" in why(f"{part({'alg': 'PS256', 'kid': 'RSA-0'})}.{claims}.{signature}")
    assert header


def test_critical_extensions_are_refused_known_or_not() -> None:
    header, claims, signature = ISSUERS.token().split(".")
    for crit in (["b64"], ["exp"], [], "x"):
        wanted = {"alg": "RS256", "kid": "RSA-0", "crit": crit, "b64": True}
        assert "critical" in why(f"{part(wanted)}.{claims}.{signature}")
    assert header


def test_a_changed_token_is_refused() -> None:
    header, _, signature = ISSUERS.token().split(".")
    assert "signature is wrong" in why(f"{header}.{part({**CLAIMS, 'sub': 'root'})}.{signature}")
    other = Issuer("RSA").token("RSA-0")
    assert "signature is wrong" in why(other)


def test_an_unknown_key_is_told_apart() -> None:
    with pytest.raises(UnknownKey):
        check(ISSUERS.token(header={"kid": "RSA-9"}))


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "a" * 70_000,
        "e30.e30.",
        f"{part([])}.e30.",
        f"{part({'alg': ['RS256']})}.e30.x",
        "é.é.é",
    ],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    why(token)


def test_deep_json_is_refused() -> None:
    deep = urlsafe_b64encode(b"[" * 40_000).decode().rstrip("=")
    why(f"{deep}.e30.x")


def test_changed_tokens_only_ever_are_refused() -> None:
    chance = random.Random(38)
    sound = ISSUERS.token()
    for _ in range(sized(200, 2_000, 40_000)):
        changed = list(sound)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(changed))] = chance.choice("Aa0_-.=")
        text = "".join(changed)
        try:
            assert check(text).user == "alice"
        except TokenRefused:
            continue


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": 7}',
        b'{"keys": []}',
        b'{"keys": [7]}',
        b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',
        b'{"keys": [{"kty": "RSA"}]}',
        b'{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}',
        b"[" * 50_000,
        b'{"keys": [' + b"{}," * 200 + b"{}]}",
    ],
)
def test_a_set_without_a_key_of_use_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"it (has|is)"):
        read_keys(text)


def test_short_private_and_encryption_keys_are_left_out() -> None:
    short = jwk.RSAKey.generate_key(2048, {"kid": "short"}).as_dict(private=False)
    short["n"] = str(short["n"])[:170] + "AQ"
    private = jwk.RSAKey.generate_key(2048, {"kid": "private"}).as_dict(private=True)
    sealing = jwk.RSAKey.generate_key(2048, {"kid": "sealing", "use": "enc"}).as_dict(private=False)
    good = ISSUERS.keys["EC-1"].as_dict(private=False)
    keys = read_keys(json.dumps({"keys": [short, private, sealing, good]}).encode())
    assert [key.key_id for key in keys] == ["EC-1"]
