"""What protects the connections of one client, made of its settings."""

import ssl

from moldau.client.security.logins import login_of
from moldau.client.security.security_settings import SecuritySettings
from moldau.transport.client_tls import ClientTls, TlsSettings
from moldau.transport.key_stores import Pem, Store


class Protection:
    """What protects each connection. Making it reads the files; raises `ConfigError`."""

    def __init__(self, settings: SecuritySettings):
        self.tls = ClientTls(tls_settings(settings)) if settings.uses_tls else None
        self.login = login_of(settings)

    def context(self) -> ssl.SSLContext | None:
        """The TLS context for the next connection; None if it has no TLS."""
        return None if self.tls is None else self.tls.context()


def protection_of(settings: SecuritySettings) -> Protection | None:
    """None if the settings ask for none. Raises `ConfigError`."""
    return Protection(settings) if settings.is_protected else None


def tls_settings(settings: SecuritySettings) -> TlsSettings:
    """The settings of TLS alone."""
    trusted: Store | Pem | None = None
    identity: Store | Pem | None = None
    key_password, key = settings.ssl_key_password, settings.ssl_keystore_key
    if settings.ssl_ca_location:
        trusted = Store(settings.ssl_ca_location, "PEM", None, "ssl.ca")
    elif settings.ssl_truststore_location:
        kind = settings.ssl_truststore_type
        trusted = Store(settings.ssl_truststore_location, kind, settings.ssl_truststore_password, "ssl.truststore")
    elif settings.ssl_truststore_certificates is not None:
        trusted = Pem(settings.ssl_truststore_certificates, "", None, "ssl.truststore.certificates")
    if settings.ssl_certificate_location:
        identity = Store(settings.ssl_certificate_location, "PEM", key_password, "ssl.certificate")
    elif settings.ssl_keystore_location:
        password = settings.ssl_keystore_password or key_password
        kind = settings.ssl_keystore_type
        identity = Store(settings.ssl_keystore_location, kind, password, "ssl.keystore", key_password)
    elif settings.ssl_keystore_certificate_chain is not None and key is not None:
        named = "ssl.keystore.key and ssl.keystore.certificate.chain"
        identity = Pem(settings.ssl_keystore_certificate_chain, key, key_password, named)
    algorithm = settings.ssl_endpoint_identification_algorithm
    return TlsSettings(
        trusted=trusted,
        identity=identity,
        key_location=settings.ssl_key_location,
        algorithm="" if algorithm.strip().lower() == "none" else algorithm,
        verifies=settings.enable_ssl_certificate_verification,
        protocols=_listed(settings.ssl_enabled_protocols) or ["TLS"],
        suites=_listed(settings.ssl_cipher_suites or ""),
        context=settings.ssl_context,
    )


def _listed(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.replace(":", ",").split(",")) if part]
