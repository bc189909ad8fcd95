"""Issues tokens, as an authorization server does."""

import base64
import json
from typing import Any

from joserfc import jwk, jws

NOW_S = 1_800_000_000
ISSUER, AUDIENCE = "https://issuer.example.org", "moldau"
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW_S + 600, "iat": NOW_S}


class Issuer:
    """Has keys, and signs with them; `kinds` are what they are made of."""

    def __init__(self, *kinds: str):
        self.keys: dict[str, Any] = {}
        for kind in kinds or ("RSA",):
            self.rotate(kind)

    def rotate(self, kind: str = "RSA") -> str:
        """Another key; returns its id."""
        key_id = f"{kind}-{len(self.keys)}"
        if kind == "RSA":
            self.keys[key_id] = jwk.RSAKey.generate_key(2048, {"kid": key_id})
        else:
            self.keys[key_id] = jwk.ECKey.generate_key("P-256", {"kid": key_id})
        return key_id

    def published(self) -> bytes:
        """The set of its public keys."""
        return json.dumps({"keys": [key.as_dict(private=False) for key in self.keys.values()]}).encode()

    def token(self, key_id: str | None = None, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token of alice; a claim that is None is left out."""
        key_id = key_id or next(iter(self.keys))
        said = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
        algorithm = "RS256" if key_id.startswith("RSA") else "ES256"
        protected = {"alg": algorithm, "kid": key_id, **(header or {})}
        protected = {name: value for name, value in protected.items() if value is not None}
        free = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
        return str(jws.serialize_compact(protected, json.dumps(said).encode(), self.keys[key_id], [algorithm], free))


def part(value: Any) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
