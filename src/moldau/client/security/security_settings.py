"""The settings of every client about TLS and SASL, with the names of Java's client and of librdkafka.

Certificates are given as files (`ssl_ca_location`, `ssl_certificate_location` and `ssl_key_location`), as Java's trust
store and key store, or as text in PEM. Values of secrets appear in no text about the settings.
"""

import dataclasses
import ssl
from collections.abc import Callable
from typing import Any

from moldau.client.values import setting, settings
from moldau.errors import ConfigError

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
MECHANISMS = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)


@settings
class SecuritySettings:
    """What a client can be told about the security of its connections."""

    security_protocol: str = setting(
        default=PLAINTEXT,
        about="PLAINTEXT; SSL for TLS; SASL_SSL for TLS and a login; SASL_PLAINTEXT for a login alone.",
    )
    ssl_ca_location: str | None = setting(
        default=None,
        aliases=("ssl_cafile",),
        about="The file, or folder, with the certificates in PEM that brokers are trusted by; by default the system's.",
    )
    ssl_certificate_location: str | None = setting(
        default=None,
        aliases=("ssl_certfile",),
        about="The file with this client's certificate in PEM, for brokers that ask for one.",
    )
    ssl_key_location: str | None = setting(
        default=None,
        aliases=("ssl_keyfile",),
        about="The file with the certificate's key in PEM; by default it is in the same file.",
    )
    ssl_key_password: str | None = setting(
        default=None, secret=True, aliases=("ssl_password",), about="The password of the key."
    )
    ssl_truststore_location: str | None = setting(
        default=None, about="As ssl_ca_location: a file in PEM or PKCS12, Java's trust store."
    )
    ssl_truststore_type: str | None = setting(default=None, about="PEM or PKCS12; by default found in the file.")
    ssl_truststore_password: str | None = setting(default=None, secret=True, about="The password of a PKCS12 file.")
    ssl_truststore_certificates: str | None = setting(
        default=None, aliases=("ssl_ca_pem",), about="As ssl_ca_location: the certificates themselves, as text in PEM."
    )
    ssl_keystore_location: str | None = setting(
        default=None, about="The file with this client's certificate and key in PEM or PKCS12, Java's key store."
    )
    ssl_keystore_type: str | None = setting(default=None, about="PEM or PKCS12; by default found in the file.")
    ssl_keystore_password: str | None = setting(default=None, secret=True, about="The password of a PKCS12 file.")
    ssl_keystore_key: str | None = setting(
        default=None, secret=True, aliases=("ssl_key_pem",), about="The key itself, as text in PEM."
    )
    ssl_keystore_certificate_chain: str | None = setting(
        default=None, aliases=("ssl_certificate_pem",), about="The certificate itself and its chain, as text in PEM."
    )
    ssl_endpoint_identification_algorithm: str = setting(
        default="https", about="https: a broker's certificate must name its host. Empty or none: it need not."
    )
    enable_ssl_certificate_verification: bool = setting(
        default=True, about="False trusts any broker: it does not protect from attackers who can redirect connections."
    )
    ssl_enabled_protocols: str = setting(
        default="TLSv1.2,TLSv1.3", about="The versions of TLS that may be used, separated by commas."
    )
    ssl_cipher_suites: str | None = setting(
        default=None,
        aliases=("ssl_ciphers",),
        about="The cipher suites of TLS 1.2 that may be used, by Java's names or OpenSSL's.",
    )
    ssl_context: ssl.SSLContext | None = setting(
        default=None, about="A context of your own, instead of the other settings of TLS."
    )

    sasl_mechanism: str | None = setting(
        default=None,
        aliases=("sasl_mechanisms",),
        about="How the user logs in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
    )
    sasl_username: str | None = setting(
        default=None, aliases=("sasl_plain_username",), about="The user of PLAIN and SCRAM."
    )
    sasl_password: str | None = setting(
        default=None, secret=True, aliases=("sasl_plain_password",), about="The password of that user."
    )
    sasl_jaas_config: str | None = setting(
        default=None, secret=True, about="User and password as Java's client has them: a login module with its options."
    )
    sasl_oauth_token_provider: Any = setting(
        default=None,
        about="For OAUTHBEARER: a function, or an object with a method token(), that returns a token. It may be async.",
    )
    oauth_cb: Callable[[str], Any] | None = setting(
        default=None,
        about="As in confluent-kafka: called with sasl_oauthbearer_config, it returns the token and the"
        " time in seconds since 1970 when it ends.",
    )
    sasl_oauthbearer_config: str | None = setting(default=None, secret=True, about="The argument of oauth_cb.")
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        default=None,
        about="Where tokens come from: the https URL of an authorization server, or the file URL of one token.",
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        default=None, aliases=("sasl_oauthbearer_client_id",), about="This client's id at the authorization server."
    )
    sasl_oauthbearer_client_credentials_client_secret: str | None = setting(
        default=None, secret=True, aliases=("sasl_oauthbearer_client_secret",), about="The secret of that id."
    )
    sasl_oauthbearer_scope: str | None = setting(default=None, about="The scope that the token is to have.")
    sasl_oauthbearer_extensions: str | None = setting(
        default=None, about="What is sent beside the token: name=value, separated by commas."
    )
    https_ca_location: str | None = setting(
        default=None, about="The file with the authorities in PEM that the authorization server is trusted by."
    )

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.upper() in (SASL_PLAINTEXT, SASL_SSL)

    @property
    def is_protected(self) -> bool:
        """Whether connections have TLS or a login."""
        return self.security_protocol.upper() != PLAINTEXT

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.upper() in (SSL, SASL_SSL)

    def refuse_unprotected(self) -> None:
        """Raise `ConfigError` if a setting asks for protection and none says that there is to be any."""
        for field in dataclasses.fields(SecuritySettings):
            if getattr(self, field.name) != field.default:
                raise ConfigError(
                    f"{field.name} is given without security_protocol, and would protect nothing: add"
                    f" security_protocol, {SSL}, {SASL_SSL} or {SASL_PLAINTEXT}, or {PLAINTEXT} to leave it out"
                )

    def check_security(self) -> None:
        """Raise `ConfigError` for a combination of settings that is not allowed."""
        protocol = self.security_protocol.upper()
        if protocol not in PROTOCOLS:
            raise ConfigError(f"security_protocol={self.security_protocol!r} is not one of {', '.join(PROTOCOLS)}")
        if self.uses_sasl:
            check_mechanism(self.sasl_mechanism, protocol)
        if self.ssl_context is not None and not isinstance(self.ssl_context, ssl.SSLContext):
            raise ConfigError("ssl_context is not an ssl.SSLContext of Python's")
        at_most_one(self, "ssl_ca_location", "ssl_truststore_location", "ssl_truststore_certificates")
        at_most_one(
            self, "ssl_certificate_location", "ssl_keystore_location", "ssl_keystore_certificate_chain", "ssl_context"
        )
        needs(self, "ssl_key_location", "ssl_certificate_location")
        needs(self, "ssl_keystore_key", "ssl_keystore_certificate_chain")
        needs(self, "ssl_keystore_certificate_chain", "ssl_keystore_key")


def check_mechanism(mechanism: str | None, protocol: str) -> None:
    """Raise `ConfigError` unless it is one of ours."""
    known = f"{', '.join(MECHANISMS[:-1])} or {MECHANISMS[-1]}"
    if not mechanism:
        raise ConfigError(
            f"security_protocol={protocol} needs sasl_mechanism: {known}, one that the broker has enabled"
        )
    if mechanism.upper() == "GSSAPI":
        raise ConfigError(f"sasl_mechanism=GSSAPI: Kerberos is not supported; {known} are")
    if mechanism.upper() not in MECHANISMS:
        raise ConfigError(f"sasl_mechanism={mechanism!r} is not one of {known}")


def at_most_one(settings: object, *names: str) -> None:
    """Raise `ConfigError` if several of these settings are given."""
    given = [name for name in names if getattr(settings, name)]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} are both given, and say the same: keep one of them")


def needs(settings: object, name: str, other: str) -> None:
    """Raise `ConfigError` if the first setting is given without the other."""
    if getattr(settings, name) and not getattr(settings, other):
        raise ConfigError(f"{name} needs {other} as well")
