"""TLS contexts from settings as Kafka and ZooKeeper have them. Names of cipher suites may be Java's."""

import ssl
from collections.abc import Sequence

from moldau.errors import ConfigError

_OF_TLS_1_3 = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def client_context(protocols: Sequence[str], suites: Sequence[str], algorithm: str, prefix: str) -> ssl.SSLContext:
    """A context for the side that dials, which trusts nobody yet (`key_stores`). `protocols` are the versions allowed,
    `TLS` for all that are safe; without `suites` OpenSSL chooses them; the server's name is checked if the `algorithm`
    is HTTPS, not if it is empty. `prefix` begins the names of the settings. Raises `ConfigError`."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, protocols, suites, prefix)
    context.check_hostname = _checks_host(algorithm, prefix)
    return context


def server_context(protocols: Sequence[str], suites: Sequence[str], prefix: str) -> ssl.SSLContext:
    """A context for the side that listens, which has no certificate and asks clients for none yet. A client of TLS 1.2
    cannot renegotiate: that would cost a handshake each time."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, protocols, suites, prefix)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def _context(side: "ssl._SSLMethod", protocols: Sequence[str], suites: Sequence[str], prefix: str) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, any certificate of a trust store is trusted
    context.minimum_version, context.maximum_version = _versions(protocols, prefix)
    if suites:
        _choose_suites(context, suites, prefix)
    return context


def _versions(names: Sequence[str], prefix: str) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    wrong = [name for name in names if name not in (*_VERSIONS, "TLS")]
    if wrong or not names:
        raise ConfigError(f"{(wrong or [''])[0]!r} is no version of TLS that {prefix} takes: TLSv1.2 and TLSv1.3 are")
    chosen = list(_VERSIONS.values()) if "TLS" in names else [_VERSIONS[name] for name in names]
    return min(chosen), max(chosen)


def _checks_host(algorithm: str, prefix: str) -> bool:
    if algorithm.strip().upper() not in ("", "HTTPS"):
        raise ConfigError(f"{prefix}.endpoint.identification.algorithm must be HTTPS or empty, not {algorithm!r}")
    return bool(algorithm.strip())


def _choose_suites(context: ssl.SSLContext, names: Sequence[str], prefix: str) -> None:
    """Python cannot choose among the suites of TLS 1.3, which are all safe. Without a suite of TLS 1.2 there is no
    TLS 1.2."""
    older = [_name_of_openssl(name) for name in names if name not in _OF_TLS_1_3]
    if not older:
        if context.maximum_version < ssl.TLSVersion.TLSv1_3:
            raise ConfigError(f"{prefix}.cipher.suites is of TLS 1.3, which {prefix}.enabled.protocols leaves out")
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(older))
    except ssl.SSLError:
        raise ConfigError(f"{prefix}.cipher.suites names no cipher suite that Python has: {', '.join(names)}") from None


def _name_of_openssl(name: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    keys, is_javas, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not is_javas:
        return name
    for java, openssl in (("AES_", "AES"), ("_CBC", ""), ("POLY1305_SHA256", "POLY1305")):
        cipher = cipher.replace(java, openssl)
    return f"{'' if keys == 'RSA' else f'{keys}-'}{cipher}".replace("_", "-")
