"""JSON Web Tokens: whose a token is, if it was signed by a known key for this broker. Sources: RFC 7515, 7517, 7519.

Signatures are checked by joserfc. What it is asked is fixed here, because libraries have failed at each of these: the
algorithms are asymmetric ones only, the key must be of the algorithm's type, and critical extensions in a header are
refused. The issuer, the audience and the end of a token are always checked. Errors never repeat a token.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from joserfc import jwk, jws
from joserfc.errors import JoseError

from moldau.transport.sasl.exchange import NAME_BYTES_MAX, Authenticated
from moldau.transport.sasl.oauthbearer import TokenRefused

ALGORITHMS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
}
"""The algorithms that are taken, and the type of their keys."""
TOKEN_BYTES_MAX: Final = 1 << 16
KEYS_MAX: Final = 100
_TRIED_MAX = 10
_RSA_BITS_MIN = 2_048
_SECONDS_MAX = 1 << 38
"""Later times are in no calendar."""
_FAULTS = (JoseError, ValueError, TypeError, KeyError, RecursionError, binascii.Error)


class TokenRules(NamedTuple):
    """What a token must say. `user_claim` has the name of its user, `scope_claim` its scopes."""

    issuer: str
    audiences: tuple[str, ...]
    skew_s: int
    user_claim: str
    scope_claim: str


class SigningKey(NamedTuple):
    """A public key, and what its set says of it."""

    key_id: str | None
    kind: str
    algorithm: str | None
    key: Any


class UnknownKey(TokenRefused):
    """The token names a key that is not among the known ones: the set may have changed."""


def read_keys(text: bytes) -> list[SigningKey]:
    """The keys for signatures in a JSON Web Key Set, at least one. Raises `ValueError`."""
    try:
        entries = json.loads(text)["keys"]
        if not isinstance(entries, list) or len(entries) > KEYS_MAX:
            raise ValueError(f"it has no list of at most {KEYS_MAX} keys")
        keys = [key for entry in entries if _is_for_signatures(entry) and (key := _key(entry)) is not None]
    except _FAULTS as fault:
        raise ValueError(f"it is not a JSON Web Key Set that can be used: {type(fault).__name__}") from None
    if not keys:
        raise ValueError("it has no RSA or EC key for signatures")
    return keys


def _is_for_signatures(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("kty") in ALGORITHMS.values()
        and entry.get("use", "sig") == "sig"
        and "d" not in entry
    )


def _key(entry: dict[str, Any]) -> SigningKey | None:
    """None for a key that is of no use."""
    try:
        if entry["kty"] == "RSA" and len(entry["n"]) * 6 < _RSA_BITS_MIN:
            return None
        key = jwk.import_key(entry)
    except _FAULTS:
        return None
    key_id, algorithm = entry.get("kid"), entry.get("alg")
    return SigningKey(
        key_id if isinstance(key_id, str) else None,
        entry["kty"],
        algorithm if isinstance(algorithm, str) else None,
        key,
    )


def check_token(token: str, keys: Sequence[SigningKey], rules: TokenRules, now_ms: int) -> Authenticated:
    """Whose token it is, and until when. Raises `TokenRefused`; `UnknownKey` if new keys may help."""
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenRefused("the token is too long")
    algorithm, key_id = _header(token)
    payload = _verified(token, algorithm, _candidates(keys, algorithm, key_id))
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise TokenRefused("the token's claims are not a JSON object")
    return _user(claims, rules, now_ms)


def _header(token: str) -> tuple[str, str | None]:
    """The algorithm and the id of the key."""
    try:
        encoded = token.split(".")[0]
        header = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
        algorithm, key_id = header["alg"], header.get("kid")
        critical = "crit" in header
    except (*_FAULTS, AttributeError):
        raise TokenRefused("the token has no header that can be read") from None
    if token.count(".") != 2 or not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused(f"the token is not signed by one of {', '.join(ALGORITHMS)}")
    if critical:
        raise TokenRefused("the token's header has critical extensions")
    return algorithm, key_id if isinstance(key_id, str) else None


def _candidates(keys: Sequence[SigningKey], algorithm: str, key_id: str | None) -> list[SigningKey]:
    fitting = [
        key
        for key in keys
        if key.kind == ALGORITHMS[algorithm]
        and key.algorithm in (None, algorithm)
        and (key_id is None or key.key_id == key_id)
    ]
    if not fitting:
        raise UnknownKey("the token is signed by a key that the issuer's set does not have")
    return fitting[:_TRIED_MAX]


def _verified(token: str, algorithm: str, keys: Sequence[SigningKey]) -> bytes:
    """The payload of a token that one of these keys has signed."""
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    for key in keys:
        try:
            payload = jws.deserialize_compact(token.encode(), key.key, [algorithm], registry).payload
        except _FAULTS:
            continue
        return bytes(payload or b"")
    raise TokenRefused("the token's signature is wrong")


def _user(claims: dict[str, Any], rules: TokenRules, now_ms: int) -> Authenticated:
    audiences = claims.get("aud")
    named = audiences if isinstance(audiences, list) else [audiences]
    if claims.get("iss") != rules.issuer:
        raise TokenRefused("the token is of another issuer than sasl.oauthbearer.expected.issuer")
    if not any(isinstance(one, str) and one in rules.audiences for one in named):
        raise TokenRefused("the token is for none of sasl.oauthbearer.expected.audience")
    ends_s, begins_s, issued_s = (_time(claims, name) for name in ("exp", "nbf", "iat"))
    now_s = now_ms / 1000
    if ends_s is None or ends_s + rules.skew_s <= now_s:
        raise TokenRefused("the token has expired, or does not say when it does")
    if any(time_s is not None and time_s - rules.skew_s > now_s for time_s in (begins_s, issued_s)):
        raise TokenRefused("the token is not valid yet")
    user, scopes = claims.get(rules.user_claim), claims.get(rules.scope_claim, "")
    if not isinstance(user, str) or not user.strip() or not user.isprintable() or len(user) > NAME_BYTES_MAX:
        raise TokenRefused(f"the token's claim {rules.user_claim} is not the name of a user")
    if not (isinstance(scopes, str) or (isinstance(scopes, list) and all(isinstance(one, str) for one in scopes))):
        raise TokenRefused(f"the token's claim {rules.scope_claim} is not a list of scopes")
    return Authenticated(user, int(ends_s * 1000))


def _time(claims: dict[str, Any], name: str) -> float | None:
    """A claim that is a time in seconds since 1970; None if there is none."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _SECONDS_MAX:
        raise TokenRefused(f"the token's claim {name} is not a time")
    return float(value)
