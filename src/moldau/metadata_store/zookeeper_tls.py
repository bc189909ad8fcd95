"""TLS to ZooKeeper, by the settings `zookeeper.ssl.*`.

Keys and certificates are read from PEM files, as OpenSSL has them, and from PKCS12 files, as Java's keytool writes them
today. Java's older JKS format is refused with the command that converts it. Names of cipher suites may be Java's.
"""

import secrets
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

from moldau.config import BrokerConfig
from moldau.errors import ConfigError

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_ENDS = {".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"}
_PREFIX = "zookeeper.ssl"


def tls_context(config: BrokerConfig) -> ssl.SSLContext | None:
    """None without `zookeeper.ssl.client.enable`. Raises `ConfigError`."""
    if not config.zookeeper_ssl_client_enable:
        return None
    socket_class = config.zookeeper_clientCnxnSocket or ""
    if socket_class.endswith("ClientCnxnSocketNIO"):
        raise ConfigError(
            f"zookeeper.clientCnxnSocket is {socket_class}, which has no TLS: remove it, or {_PREFIX}.client.enable"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version, context.maximum_version = _versions(config)
    context.check_hostname = _checks_host(config.zookeeper_ssl_endpoint_identification_algorithm)
    if config.zookeeper_ssl_cipher_suites:
        _choose_suites(context, config.zookeeper_ssl_cipher_suites)
    _trust(context, config)
    _identify(context, config)
    return context


def _versions(config: BrokerConfig) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    names = config.zookeeper_ssl_enabled_protocols or (config.zookeeper_ssl_protocol,)
    wrong = [name for name in names if name not in (*_VERSIONS, "TLS")]
    if wrong:
        raise ConfigError(f"{wrong[0]!r} is not a protocol for connections to ZooKeeper: TLSv1.2 and TLSv1.3 are")
    chosen = list(_VERSIONS.values()) if "TLS" in names else [_VERSIONS[name] for name in names]
    return min(chosen), max(chosen)


def _checks_host(algorithm: str) -> bool:
    if algorithm.strip().upper() not in ("", "HTTPS"):
        raise ConfigError(f"{_PREFIX}.endpoint.identification.algorithm must be HTTPS or empty, not {algorithm!r}")
    return bool(algorithm.strip())


def _choose_suites(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Those of TLS 1.3 are always allowed: Python cannot choose among them."""
    older = [_name_of_openssl(name) for name in names]
    try:
        context.set_ciphers(":".join(name for name in older if not name.startswith("TLS_")) or "DEFAULT")
    except ssl.SSLError:
        raise ConfigError(
            f"{_PREFIX}.cipher.suites names no cipher suite that Python has: {', '.join(names)}"
        ) from None


def _name_of_openssl(name: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    keys, found, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not found:
        return name
    for java, openssl in (("AES_", "AES"), ("_CBC", ""), ("POLY1305_SHA256", "POLY1305")):
        cipher = cipher.replace(java, openssl)
    return f"{'' if keys == 'RSA' else f'{keys}-'}{cipher}".replace("_", "-")


def _trust(context: ssl.SSLContext, config: BrokerConfig) -> None:
    location = config.zookeeper_ssl_truststore_location
    if not location:
        context.load_default_certs()
        return
    kind = _kind(location, config.zookeeper_ssl_truststore_type, "truststore")
    try:
        if kind == "PEM":
            context.load_verify_locations(location)
        else:
            _, certificates = _unlocked(location, config.zookeeper_ssl_truststore_password, "truststore")
            context.load_verify_locations(cadata=certificates)
    except (OSError, ValueError) as error:
        raise _unreadable(location, "truststore", error) from None


def _identify(context: ssl.SSLContext, config: BrokerConfig) -> None:
    location, password = config.zookeeper_ssl_keystore_location, config.zookeeper_ssl_keystore_password
    if not location:
        return
    kind = _kind(location, config.zookeeper_ssl_keystore_type, "keystore")
    try:
        if kind == "PEM":
            context.load_cert_chain(location, password=lambda: password or "")
            return
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # OpenSSL takes a key from files only
            once = secrets.token_hex(16)
            key, certificates = _unlocked(location, password, "keystore", once)
            file.write(key + certificates)
            file.flush()
            context.load_cert_chain(file.name, password=once)
    except (OSError, ValueError) as error:
        raise _unreadable(location, "keystore", error) from None


def _kind(location: str, given: str | None, what: str) -> str:
    kind = (given or _ENDS.get(Path(location).suffix.lower(), "")).upper()
    if kind == "JKS":
        raise ConfigError(
            f"{_PREFIX}.{what}.location is a JKS file, which only Java reads: convert it with `keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {Path(location).with_suffix('.p12')} -deststoretype PKCS12`"
        )
    if kind not in ("PEM", "PKCS12"):
        raise ConfigError(f"{_PREFIX}.{what}.type must be PEM or PKCS12, and the name of {location} does not say which")
    return kind


def _unlocked(location: str, password: str | None, what: str, encrypting: str = "") -> tuple[str, str]:
    """The key of a PKCS12 file, locked by another password, and its certificates; both in PEM. Raises `ValueError`."""
    try:
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{location} needs the library cryptography: install it with `pip install 'moldau[cluster]'`, or use PEM"
        ) from None
    found = load_pkcs12(Path(location).read_bytes(), password.encode() if password else None)
    certificates = [one.certificate for one in (found.cert, *found.additional_certs) if one is not None]
    chain = "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)
    if what == "truststore":
        return "", chain
    if found.key is None:
        raise ValueError("it has no key")
    lock = BestAvailableEncryption(encrypting.encode())
    return found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode(), chain


def _unreadable(location: str, what: str, error: Exception) -> ConfigError:
    if isinstance(error, ssl.SSLError):
        reason = "it is not PEM, or the password is wrong" if error.reason is None else error.reason.lower()
    else:
        reason = getattr(error, "strerror", None) or str(error)
    return ConfigError(f"cannot use {location}, which {_PREFIX}.{what}.location names: {reason}")
