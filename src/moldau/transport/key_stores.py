"""Keys and certificates for TLS, from the files or the texts that settings name.

They are read from PEM files, as OpenSSL has them, and from PKCS12 files, as Java's keytool writes them today. Java's
older JKS format is refused with the command that converts it. All of it may raise `ConfigError`, which names the
setting, and blocks.
"""

import contextlib
import errno
import os
import re
import secrets
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from moldau.errors import ConfigError
from moldau.names import how_to_install

_ENDS = {".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"}
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \1-----")


class Store(NamedTuple):
    """A key store or a trust store: its file, type (None if the file's name says it) and password, and what its
    settings begin with, such as `zookeeper.ssl.keystore`. `key_password` is that of a key in PEM, if it has another
    setting than the one of the file."""

    location: str
    kind: str | None
    password: str | None
    setting: str
    key_password: str | None = None

    def __repr__(self) -> str:
        return f"Store({self.location!r})"


class Pem(NamedTuple):
    """Certificates, and perhaps the key of the first, as text. `setting` is the setting that has it."""

    certificates: str
    key: str
    password: str | None
    setting: str

    def __repr__(self) -> str:
        return f"Pem({self.setting!r})"


def trust(context: ssl.SSLContext, store: Store | Pem) -> None:
    """Trust the certificates in a trust store."""
    try:
        if isinstance(store, Pem):
            context.load_verify_locations(cadata=_in_lines(store.certificates))
        elif _kind(store) == "PEM":
            is_folder = Path(store.location).is_dir()
            context.load_verify_locations(**{"capath" if is_folder else "cafile": store.location})
        else:
            context.load_verify_locations(cadata=_unlocked(store)[1])
    except (OSError, ValueError) as error:
        raise _unreadable(store, error) from None


def identify(context: ssl.SSLContext, store: Store | Pem, key: str | None = None) -> None:
    """Present the certificate of a key store, and own its key. In PEM the key may be in another file, `key`."""
    password = store.password or ""
    try:
        if isinstance(store, Pem):
            with _as_file(_in_lines(f"{store.key}\n{store.certificates}")) as path:
                context.load_cert_chain(path, password=lambda: password)
        elif _kind(store) == "PEM":
            context.load_cert_chain(store.location, key, password=lambda: store.key_password or password)
        else:
            once = secrets.token_hex(16)
            key, certificates = _unlocked(store, once)
            with _as_file(key + certificates) as path:
                context.load_cert_chain(path, password=once)
    except (OSError, ValueError) as error:
        raise _unreadable(store, ValueError(lacks) if (lacks := _lacks(store, key)) else error) from None


def _lacks(store: Store | Pem, key: str | None) -> str | None:
    """What a file in PEM does not have, which OpenSSL does not tell apart from a wrong password."""
    if isinstance(store, Pem):
        return None
    try:
        text = Path(store.location).read_text(errors="replace")
    except OSError:
        return None
    if "-----BEGIN " not in text:
        return None
    if "CERTIFICATE-----" not in text:
        return "it has no certificate"
    return None if key is not None or "PRIVATE KEY-----" in text else "it has no key"


def own_certificate(store: Store | Pem) -> bytes:
    """The certificate of a key store, in DER."""
    try:
        if isinstance(store, Pem):
            text = _in_lines(store.certificates)
        elif _kind(store) == "PEM":
            text = Path(store.location).read_text()
        else:
            text = _unlocked(store)[1]
        first = next(block[0] for block in _BLOCK.finditer(text) if block[1].endswith("CERTIFICATE"))
        return ssl.PEM_cert_to_DER_cert(first)
    except (OSError, ValueError, StopIteration) as error:
        raise _unreadable(store, ValueError("it has no certificate") if str(error) == "" else error) from None


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """OpenSSL takes a key from files only: one in memory, where the system has that."""
    if not hasattr(os, "memfd_create") or not Path("/proc/self/fd").exists():
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # only its owner may read it
            file.write(text)
            file.flush()
            yield file.name
        return
    fd = os.memfd_create("key")
    with open(fd, "w") as memory:
        memory.write(text)
        memory.flush()
        yield f"/proc/self/fd/{fd}"


def _in_lines(text: str) -> str:
    """PEM as OpenSSL reads it: a settings file may have it all in one line."""

    def lines(block: re.Match[str]) -> str:
        name, body = block.groups()
        if "\n" in body:
            return block[0]
        data = "".join(body.split())
        cut = "\n".join(data[at : at + 64] for at in range(0, len(data), 64))
        return f"\n-----BEGIN {name}-----\n{cut}\n-----END {name}-----\n"

    return _BLOCK.sub(lines, text)


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
    if not kind and not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if kind not in ("PEM", "PKCS12"):
        raise ConfigError(f"{store.setting}.type must be PEM or PKCS12, and {path} does not look like either")
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
            f"{store.location} needs the library cryptography: {how_to_install('security')}, or use PEM"
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


def _unreadable(store: Store | Pem, error: Exception) -> ConfigError:
    if isinstance(error, ssl.SSLError):
        reason = "it is not PEM, or the password is wrong" if error.reason is None else error.reason.lower()
    else:
        reason = getattr(error, "strerror", None) or str(error)
    if isinstance(store, Pem):
        return ConfigError(f"cannot use the certificates in {store.setting}: {reason}")
    return ConfigError(f"cannot use {store.location}, which {store.setting}.location names: {reason}")
