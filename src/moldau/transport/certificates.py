"""The TLS contexts of a listener, from the settings `ssl.*` that hold for it. It blocks, since it reads files."""

import ssl
from typing import Protocol

from moldau.errors import ConfigError
from moldau.transport.key_stores import Pem, Store, identify, trust
from moldau.transport.tls import client_context, server_context

_PREFIX = "ssl"
_FLIGHTS = 4
"""More than a handshake takes."""
_TIMES = (9, 10)
"""OpenSSL's numbers of a certificate that is not valid yet, and of one that has expired."""
_MODES = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class ListenerTlsSettings(Protocol):
    """The settings, as `ProtectionSettings` has them."""

    @property
    def ssl_keystore_location(self) -> str | None: ...
    @property
    def ssl_keystore_type(self) -> str | None: ...
    @property
    def ssl_keystore_password(self) -> str | None: ...
    @property
    def ssl_key_password(self) -> str | None: ...
    @property
    def ssl_keystore_certificate_chain(self) -> str | None: ...
    @property
    def ssl_keystore_key(self) -> str | None: ...
    @property
    def ssl_truststore_location(self) -> str | None: ...
    @property
    def ssl_truststore_type(self) -> str | None: ...
    @property
    def ssl_truststore_password(self) -> str | None: ...
    @property
    def ssl_truststore_certificates(self) -> str | None: ...
    @property
    def ssl_enabled_protocols(self) -> tuple[str, ...]: ...
    @property
    def ssl_cipher_suites(self) -> tuple[str, ...] | None: ...
    @property
    def ssl_endpoint_identification_algorithm(self) -> str: ...


def context_of_listener(settings: ListenerTlsSettings, client_auth: str) -> ssl.SSLContext:
    """The context that a listener accepts connections by; `client_auth` is `none`, `requested` or `required`. Raises
    `ConfigError`."""
    context = server_context(settings.ssl_enabled_protocols, settings.ssl_cipher_suites or (), _PREFIX)
    own = key_store(settings)
    if own is None:
        raise ConfigError(
            "it has no certificate: set ssl.keystore.location to a PEM or PKCS12 file with a certificate and its key"
        )
    identify(context, own)
    if client_auth != "none":
        trusted = trust_store(settings)
        if trusted is None:
            raise ConfigError(
                f"ssl.client.auth is {client_auth}, and no certificate is trusted: set ssl.truststore.location to a "
                "file with the certificate of the authority that signs those of clients"
            )
        trust(context, trusted)
        context.verify_mode = _MODES[client_auth]
    return context


def context_to_brokers(settings: ListenerTlsSettings) -> ssl.SSLContext:
    """The context by which a broker connects to that listener of other brokers, with the certificate of its own.
    Without a trust store those are trusted whom the system trusts. Raises `ConfigError`."""
    protocols, suites = settings.ssl_enabled_protocols, settings.ssl_cipher_suites or ()
    context = client_context(protocols, suites, settings.ssl_endpoint_identification_algorithm, _PREFIX)
    trusted, own = trust_store(settings), key_store(settings)
    if trusted is None:
        context.load_default_certs()
    else:
        trust(context, trusted)
    if own is not None:
        identify(context, own)
    return context


def check_alike(to_brokers: ssl.SSLContext, context: ssl.SSLContext) -> None:
    """Whether a broker could connect to another one with the same files, except for the other's host name: shakes hands
    in memory. Raises `ConfigError`."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    checks_host, to_brokers.check_hostname = to_brokers.check_hostname, False
    try:
        sides = to_brokers.wrap_bio(to_client, to_server), context.wrap_bio(to_server, to_client, server_side=True)
        for side in sides * _FLIGHTS:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", None) or (error.reason or "").replace("_", " ").lower()
        remedy = "ssl.truststore.location must have the authority that signed the certificate in ssl.keystore.location"
        if getattr(error, "verify_code", 0) in _TIMES:
            remedy = "ssl.keystore.location needs a certificate that is valid now"
        raise ConfigError(
            f"a broker with these files could not connect to another one with the same ({why}): {remedy}"
        ) from None
    finally:
        to_brokers.check_hostname = checks_host


def key_store(settings: ListenerTlsSettings) -> Store | Pem | None:
    """The certificate and key that the settings name, None if they name none. Raises `ConfigError`."""
    location, chain, key = (
        settings.ssl_keystore_location,
        settings.ssl_keystore_certificate_chain,
        settings.ssl_keystore_key,
    )
    if location and (chain or key):
        raise ConfigError(
            "ssl.keystore.location and ssl.keystore.certificate.chain or ssl.keystore.key are both set: give the file "
            "or the text"
        )
    if location:
        password = settings.ssl_keystore_password or settings.ssl_key_password
        return Store(location, settings.ssl_keystore_type, password, "ssl.keystore", settings.ssl_key_password)
    if not (chain or key):
        return None
    if not (chain and key):
        missing = "ssl.keystore.key" if chain else "ssl.keystore.certificate.chain"
        raise ConfigError(f"{missing} is missing: a certificate and its key belong together")
    _check_is_pem(settings.ssl_keystore_type, "ssl.keystore")
    return Pem(chain, key, settings.ssl_key_password, "ssl.keystore.certificate.chain")


def trust_store(settings: ListenerTlsSettings) -> Store | Pem | None:
    """The certificates that the settings trust, None if they name none. Raises `ConfigError`."""
    location, certificates = settings.ssl_truststore_location, settings.ssl_truststore_certificates
    if location and certificates:
        raise ConfigError(
            "ssl.truststore.location and ssl.truststore.certificates are both set: give the file or the text"
        )
    if location:
        return Store(location, settings.ssl_truststore_type, settings.ssl_truststore_password, "ssl.truststore")
    if not certificates:
        return None
    _check_is_pem(settings.ssl_truststore_type, "ssl.truststore")
    return Pem(certificates, "", None, "ssl.truststore.certificates")


def _check_is_pem(kind: str | None, setting: str) -> None:
    if kind and kind.upper() != "PEM":
        raise ConfigError(f"{setting}.type is {kind}, but text is always PEM: set it to PEM, or remove it")
