"""The settings of SASL: which mechanisms the clients of a listener authenticate by, and what they are checked against.

Each holds for every listener unless one has a value of its own, `listener.name.<listener>.<name>`, some even for one
mechanism of it: `listener.name.<listener>.<mechanism>.<name>`, all in lower case.
"""

from dataclasses import dataclass

from moldau.config.setting import INT, INT_MAX, LIST, LONG, PASSWORD, STRING, Setting, settings_of

OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
CALLBACK = "sasl.server.callback.handler.class"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
"""Kafka's class that checks tokens as this broker does: it may be named."""
_OF_MECHANISM = ("connections.max.reauth.ms", "sasl.jaas.config", "sasl.oauthbearer.")
_FIXED = {"read_only": True}


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class SaslSettings:
    """The settings that one listener may have for itself, and their values for all others."""

    sasl_enabled_mechanisms: tuple[str, ...] = LIST(("GSSAPI",), "The SASL mechanisms of a listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. Kafka's default, GSSAPI, is not supported: set it for a listener with SASL.", **_FIXED)
    sasl_jaas_config: str | None = PASSWORD(None, "The users of PLAIN, each as an option user_NAME=\"PASSWORD\" of PlainLoginModule; username and password are what this broker logs in with at the others, if sasl.mechanism.inter.broker.protocol is the mechanism. With OAUTHBEARER, ssl.truststore.location and its type and password are options that say whom this broker trusts as an authorization server.", **_FIXED)
    sasl_mechanism_inter_broker_protocol: str = STRING("GSSAPI", "The SASL mechanism by which this broker logs in at other brokers; set it if their listener has SASL, to one of sasl.enabled.mechanisms there.", **_FIXED)
    sasl_server_max_receive_size: int = INT(524_288, "The size of the largest request of a client that has not authenticated, in bytes.", low=1, **_FIXED)
    sasl_server_authentication_timeout_ms: int = INT(30_000, "The time after which a connection that has not authenticated is closed.", low=1, high=INT_MAX, **_FIXED)
    connection_failed_authentication_delay_ms: int = INT(100, "The time until a client that fails to authenticate gets the error and its connection is closed.", low=0, **_FIXED)
    connections_max_reauth_ms: int = LONG(0, "The longest time until a client has to authenticate again; 0 for no limit.", **_FIXED)
    sasl_oauthbearer_jwks_endpoint_url: str | None = STRING(None, "Where the keys are that OAUTHBEARER's tokens are signed with: the https:// or file:// URL of a JSON Web Key Set. OAUTHBEARER needs it.", **_FIXED)
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = LONG(3_600_000, "How often these keys are read again.", low=1, **_FIXED)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = LONG(100, "The first wait after these keys could not be read; it is doubled with each failure.", low=1, **_FIXED)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = LONG(10_000, "The longest of these waits, and the shortest between two reads because of a token that names an unknown key.", low=1, **_FIXED)
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = LIST(None, "The audiences; a token must name at least one of them; OAUTHBEARER needs it.", **_FIXED)
    sasl_oauthbearer_expected_issuer: str | None = STRING(None, "The issuer that a token must name; OAUTHBEARER needs it.", **_FIXED)
    sasl_oauthbearer_clock_skew_seconds: int = INT(30, "How far the clock of a token's issuer may be from this broker's.", low=0, high=3_600, **_FIXED)
    sasl_oauthbearer_scope_claim_name: str = STRING("scope", "The claim of a token that has its scopes.", **_FIXED)
    sasl_oauthbearer_sub_claim_name: str = STRING("sub", "The claim of a token that has the name of its user.", **_FIXED)
    sasl_oauthbearer_token_endpoint_url: str | None = STRING(None, "Where this broker's own tokens come from, if sasl.mechanism.inter.broker.protocol is OAUTHBEARER: the https:// URL of an authorization server, or the file:// URL of a file with a token.", **_FIXED)
    sasl_oauthbearer_client_credentials_client_id: str | None = STRING(None, "This broker's id at that authorization server; or the option clientId of the login module in sasl.jaas.config.", **_FIXED)
    sasl_oauthbearer_client_credentials_client_secret: str | None = PASSWORD(None, "The secret of that id; or the option clientSecret.", **_FIXED)
    sasl_oauthbearer_scope: str | None = STRING(None, "The scope that this broker's token is to have; or the option scope.", **_FIXED)
# fmt: on


@dataclass(frozen=True)
class TokenSettings:
    """The settings of delegation tokens, which are the cluster's."""

    delegation_token_secret_key: str | None = PASSWORD(
        None,
        "The key that derives the secrets of delegation tokens, the same at every broker; without it tokens are refused.",
        **_FIXED,
    )
    delegation_token_max_lifetime_ms: int = LONG(
        604_800_000, "The longest life of a delegation token, however often it is renewed.", low=1, **_FIXED
    )
    delegation_token_expiry_time_ms: int = LONG(
        86_400_000, "How long a delegation token is valid without being renewed.", low=1, **_FIXED
    )
    delegation_token_expiry_check_interval_ms: int = LONG(
        3_600_000, "How often expired delegation tokens are removed.", low=1, **_FIXED
    )


SASL: dict[str, Setting] = settings_of(SaslSettings)
OF_MECHANISM: dict[str, Setting] = {name: one for name, one in SASL.items() if name.startswith(_OF_MECHANISM)}
"""The settings that one mechanism of a listener may have for itself."""
