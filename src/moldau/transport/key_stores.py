"""Keys and certificates for TLS, from the files that settings name.

They are read from PEM files, as OpenSSL has them, and from PKCS12 files, as Java's keytool writes them today. Java's
older JKS format is refused with the command that converts it. All of it may raise `ConfigError`, which names the
setting, and blocks.
"""

import secrets
import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

from moldau.errors import ConfigError
from moldau.names import how_to_install

_ENDS = {".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"}


class Store(NamedTuple):
    """A key store or a trust store: its file, type (None if the file's name says it) and password, and what its
    settings begin with, such as `zookeeper.ssl.keystore`."""

    location: str
    kind: str | None
    password: str | None
    setting: str

    def __repr__(self) -> str:
        return f"Store({self.location!r})"


def trust(context: ssl.SSLContext, store: Store) -> None:
    """Trust the certificates in a trust store."""
    kind = _kind(store)
    try:
        if kind == "PEM":
            is_folder = Path(store.location).is_dir()
            context.load_verify_locations(**{"capath" if is_folder else "cafile": store.location})
        else:
            context.load_verify_locations(cadata=_unlocked(store)[1])
    except (OSError, ValueError) as error:
        raise _unreadable(store, error) from None


def identify(context: ssl.SSLContext, store: Store, key: str | None = None) -> None:
    """Present the certificate of a key store, and own its key. In PEM the key may be in another file, `key`."""
    kind = _kind(store)
    try:
        if kind == "PEM":
            context.load_cert_chain(store.location, key, password=lambda: store.password or "")
            return
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # OpenSSL takes a key from files only
            once = secrets.token_hex(16)
            key, certificates = _unlocked(store, once)
            file.write(key + certificates)
            file.flush()
            context.load_cert_chain(file.name, password=once)
    except (OSError, ValueError) as error:
        raise _unreadable(store, error) from None


def _kind(store: Store) -> str:
    path = Path(store.location)
    kind = (store.kind or _ENDS.get(path.suffix.lower(), "")).upper()
    if kind in ("", "JKS"):  # Java's keytool has written PKCS12 for years, whatever a file is called
        kind = _by_content(path) or kind
    if kind == "JKS":
        raise ConfigError(
            f"{store.setting}.location is a JKS file, which only Java reads: convert it with `keytool -importkeystore "
            f"-srckeystore {path} -destkeystore {path.with_suffix('.p12')} -deststoretype PKCS12`"
        )
    if kind not in ("PEM", "PKCS12"):
        raise ConfigError(f"{store.setting}.type must be PEM or PKCS12, and the name of {path} does not say which")
    return kind


def _by_content(path: Path) -> str | None:
    """What a file is by its first bytes; None if they do not say."""
    try:
        with path.open("rb") as file:
            first = file.read(4096)
    except OSError:
        return None
    if first.startswith(b"\xfe\xed\xfe\xed"):
        return "JKS"
    if first.startswith(b"\x30"):
        return "PKCS12"
    return "PEM" if b"-----BEGIN " in first else None


def _unlocked(store: Store, encrypting: str | None = None) -> tuple[str, str]:
    """The key of a PKCS12 file, locked by another password (none if that is None), and its certificates; both in PEM.
    Raises `ValueError`."""
    try:
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{store.location} needs the library cryptography: {how_to_install('cluster')}, or use PEM"
        ) from None
    opened = load_pkcs12(Path(store.location).read_bytes(), store.password.encode() if store.password else None)
    certificates = [one.certificate for one in (opened.cert, *opened.additional_certs) if one is not None]
    chain = "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)
    if encrypting is None:
        return "", chain
    if opened.key is None:
        raise ValueError("it has no key")
    lock = BestAvailableEncryption(encrypting.encode())
    return opened.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode(), chain


def _unreadable(store: Store, error: Exception) -> ConfigError:
    if isinstance(error, ssl.SSLError):
        reason = "it is not PEM, or the password is wrong" if error.reason is None else error.reason.lower()
    else:
        reason = getattr(error, "strerror", None) or str(error)
    return ConfigError(f"cannot use {store.location}, which {store.setting}.location names: {reason}")
