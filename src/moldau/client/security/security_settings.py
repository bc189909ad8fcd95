"""The settings of every client about TLS, with the names of Java's client and of librdkafka.

Certificates are given as files (`ssl_ca_location`, `ssl_certificate_location` and `ssl_key_location`), as Java's trust
store and key store, or as text in PEM. Values of secrets appear in no text about the settings.
"""

import dataclasses
import ssl

from moldau.client.setting_fields import setting, settings
from moldau.errors import ConfigError

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)


@settings
class SecuritySettings:
    """What a client can be told about the security of its connections."""

    security_protocol: str = setting(default=PLAINTEXT, about="PLAINTEXT, or SSL for TLS; SASL is not there yet.")
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
    ssl_truststore_type: str | None = setting(default=None, about="PEM or PKCS12; by default what the file is.")
    ssl_truststore_password: str | None = setting(default=None, secret=True, about="The password of a PKCS12 file.")
    ssl_truststore_certificates: str | None = setting(
        default=None, aliases=("ssl_ca_pem",), about="As ssl_ca_location: the certificates themselves, as text in PEM."
    )
    ssl_keystore_location: str | None = setting(
        default=None, about="The file with this client's certificate and key in PEM or PKCS12, Java's key store."
    )
    ssl_keystore_type: str | None = setting(default=None, about="PEM or PKCS12; by default what the file is.")
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
        default=True, about="False trusts any broker, and protects from nobody who can change what is sent."
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

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.upper() in (SSL, SASL_SSL)

    def refuse_unprotected(self) -> None:
        """Raise `ConfigError` if a setting asks for protection and none says that there is to be any."""
        for field in dataclasses.fields(SecuritySettings):
            if getattr(self, field.name) != field.default:
                raise ConfigError(
                    f"{field.name} is given without security_protocol, and would protect nothing: add"
                    f" security_protocol='{SSL}', or '{PLAINTEXT}' to leave it out"
                )

    def check_security(self) -> None:
        """Raise `ConfigError` for a combination of settings that is not allowed."""
        protocol = self.security_protocol.upper()
        if protocol not in PROTOCOLS:
            raise ConfigError(f"security_protocol={self.security_protocol!r} is not one of {', '.join(PROTOCOLS)}")
        if protocol in (SASL_PLAINTEXT, SASL_SSL):
            raise ConfigError(f"security_protocol={self.security_protocol!r}: SASL is not there yet")
        if self.ssl_context is not None and not isinstance(self.ssl_context, ssl.SSLContext):
            raise ConfigError("ssl_context is not an ssl.SSLContext of Python's")
        at_most_one(self, "ssl_ca_location", "ssl_truststore_location", "ssl_truststore_certificates")
        at_most_one(
            self, "ssl_certificate_location", "ssl_keystore_location", "ssl_keystore_certificate_chain", "ssl_context"
        )
        needs(self, "ssl_key_location", "ssl_certificate_location")
        needs(self, "ssl_keystore_key", "ssl_keystore_certificate_chain")
        needs(self, "ssl_keystore_certificate_chain", "ssl_keystore_key")


def at_most_one(settings: object, *names: str) -> None:
    """Raise `ConfigError` if several of these settings are given."""
    given = [name for name in names if getattr(settings, name)]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} are both given, and say the same: keep one of them")


def needs(settings: object, name: str, other: str) -> None:
    """Raise `ConfigError` if the first setting is given without the other."""
    if getattr(settings, name) and not getattr(settings, other):
        raise ConfigError(f"{name} needs {other} as well")
