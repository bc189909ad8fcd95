"""The settings of SASL: which mechanisms the clients of a listener authenticate by, and what they are checked against.

Each holds for every listener unless one has a value of its own, `listener.name.<listener>.<name>`, some even for one
mechanism of it: `listener.name.<listener>.<mechanism>.<name>`, all in lower case.
"""

from dataclasses import dataclass

from moldau.config.setting import INT, INT_MAX, LIST, LONG, PASSWORD, STRING, Setting, settings_of

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OF_MECHANISM = ("connections.max.reauth.ms", "sasl.jaas.config")
_FIXED = {"read_only": True}


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class SaslSettings:
    """The settings that one listener may have for itself, and their values for all others."""

    sasl_enabled_mechanisms: tuple[str, ...] = LIST(("GSSAPI",), "The SASL mechanisms of a listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512. Kafka's default, GSSAPI, is not supported: set it for a listener with SASL.", **_FIXED)
    sasl_jaas_config: str | None = PASSWORD(None, "The users of PLAIN, each as an option user_NAME=\"PASSWORD\" of PlainLoginModule; username and password are what this broker logs in with at the others, if sasl.mechanism.inter.broker.protocol is the mechanism.", **_FIXED)
    sasl_mechanism_inter_broker_protocol: str = STRING("GSSAPI", "The SASL mechanism by which this broker logs in at other brokers; set it if their listener has SASL.", **_FIXED)
    sasl_server_max_receive_size: int = INT(524_288, "The size of the largest request of a client that has not authenticated, in bytes.", low=1, **_FIXED)
    sasl_server_authentication_timeout_ms: int = INT(30_000, "The time after which a connection that has not authenticated is closed.", low=1, high=INT_MAX, **_FIXED)
    connection_failed_authentication_delay_ms: int = INT(100, "How long a client that fails to authenticate waits until it hears so and its connection is closed.", low=0, **_FIXED)
    connections_max_reauth_ms: int = LONG(0, "The longest time until a client has to authenticate again; 0 for no limit.", **_FIXED)
# fmt: on


SASL: dict[str, Setting] = settings_of(SaslSettings)
