"""Logins and delegation tokens on a listener without logins: nothing of them has a place there."""

from moldau.protocol.apis import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
)
from tests.differential.script import Step, step

ANN = {"principal_type": "User", "principal_name": "ann"}


def of(api: Api, what: str, **fields: object) -> tuple[Step, ...]:
    """The request in each version."""
    return tuple(
        step(f"{what}, version {version}", api, version, fields, connection="logins")
        for version in range(api.low, api.high + 1)
    )


STEPS: tuple[Step, ...] = (
    *of(SASL_HANDSHAKE, "a login by PLAIN", mechanism="PLAIN"),
    *of(SASL_HANDSHAKE, "a login by nothing", mechanism=""),
    *of(SASL_AUTHENTICATE, "a password without a login", auth_bytes=b"\0ann\0secret"),
    *of(CREATE_DELEGATION_TOKEN, "a token", renewers=[], max_lifetime_ms=-1),
    *of(CREATE_DELEGATION_TOKEN, "a token that ann renews", renewers=[ANN], max_lifetime_ms=1000),
    *of(CREATE_DELEGATION_TOKEN, "a token that a group renews", renewers=[{**ANN, "principal_type": "Group"}]),
    *of(RENEW_DELEGATION_TOKEN, "renew what is no token", hmac=b"none", renew_period_ms=1000),
    *of(EXPIRE_DELEGATION_TOKEN, "end what is no token", hmac=b"none", expiry_time_period_ms=-1),
    *of(DESCRIBE_DELEGATION_TOKEN, "describe every token", owners=None),
    *of(DESCRIBE_DELEGATION_TOKEN, "describe nobody's tokens", owners=[]),
    *of(DESCRIBE_DELEGATION_TOKEN, "describe ann's tokens", owners=[ANN]),
)
