"""`moldau certificates make`: an authority for development, and the certificates of hosts and users that it signs."""

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.options import Json
from moldau.cli.output import note, print_json, print_table
from moldau.errors import ConfigError

if TYPE_CHECKING:
    from moldau.transport.authority import CertificateAuthority, Certified

DAYS_MAX = 3600
_NAME = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:@+-]{0,63}", re.ASCII)
_RESERVED = ("ca", "password")

app = Group("certificates")


@app.command()
def make(
    folder: Annotated[Path, Argument("DIR", help="The folder of the files; made if it is not there.")],
    host: Annotated[
        list[str] | None,
        Option(
            "--host",
            metavar="NAME[,NAME...]",
            help="A broker's host: all names and addresses that clients connect to, separated by commas; repeatable."
            " localhost if neither a host nor a user is given.",
        ),
    ] = None,
    user: Annotated[list[str] | None, Option("--user", metavar="NAME", help="A client's user; repeatable.")] = None,
    days: Annotated[int, Option(min=1, max=DAYS_MAX, help="For how long the certificates are valid.")] = 365,
    as_json: Json = False,
) -> None:
    """
    Make certificates for development: an authority, and a key and certificate for each host and user, signed by it.

    DIR gets ca.pem, the certificate that the others are trusted by, and ca.key. A host or user gets NAME.pem (key and
    certificates) and NAME.p12 (the same for Java; its password is in the file DIR/password). Only you can read files
    with keys. Called again, it uses the authority that is there, and replaces the certificates of the hosts and users
    named.

    Examples:

      moldau certificates make certificates --host localhost --user alice

      moldau certificates make certificates --host broker1.example.org,10.0.0.5 --host broker2.example.org
    """
    hosts = [[name for name in names.split(",") if name] for names in host or []]
    users = user or []
    if not hosts and not users:
        hosts = [["localhost"]]
    files = [names[0] if names else "" for names in hosts] + users
    for name in [*files, *(name.removeprefix("*.") for names in hosts for name in names[1:])]:
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise ConfigError(f"{name!r} cannot be the name of a host or user here")
    if len(set(files)) < len(files):
        raise ConfigError("a host or user is named twice")
    from moldau.transport.authority import CertificateAuthority  # cryptography is not imported by other commands

    folder.mkdir(parents=True, exist_ok=True)
    authority = _authority(folder, CertificateAuthority)
    password = _password(folder)
    try:
        made = [authority.for_host(names, days) for names in hosts] + [authority.for_user(one, days) for one in users]
    except ValueError as error:
        raise ConfigError(f"no certificate can have this name: {error}") from None
    rows = [_written(folder, name, one, password) for name, one in zip(files, made, strict=True)]
    if as_json:
        trusted = {"pem": str(folder / "ca.pem"), "pkcs12": str(folder / "ca.p12")}
        print_json({"authority": trusted, "password_file": str(folder / "password"), "certificates": rows})
        return
    print_table(["NAME", "PEM", "PKCS12"], [[row["name"], row["pem"], row["pkcs12"]] for row in rows])
    note(f"all are trusted by {folder / 'ca.pem'}; the password of .p12 files is in {folder / 'password'}")


def _authority(folder: Path, kind: "type[CertificateAuthority]") -> "CertificateAuthority":
    """The authority in the folder, made if there is none."""
    key, certificate = folder / "ca.key", folder / "ca.pem"
    if key.exists() and certificate.exists():
        try:
            return kind.loaded(key.read_bytes(), certificate.read_bytes())
        except ValueError as error:
            raise ConfigError(
                f"{key} and {certificate} are not an authority that this command made ({error}): name another folder"
            ) from None
    authority = kind.new()
    _write(key, authority.key)
    _write(certificate, authority.certificate, 0o644)
    _write(folder / "ca.p12", authority.trust_store, 0o644)
    return authority


def _password(folder: Path) -> str:
    path = folder / "password"
    if not path.exists():
        _write(path, secrets.token_urlsafe(16).encode())
    return path.read_text().strip()


def _written(folder: Path, name: str, one: "Certified", password: str) -> dict[str, str]:
    pem, bundle = folder / f"{name}.pem", folder / f"{name}.p12"
    _write(pem, one.chain)
    _write(bundle, one.bundle(password))
    return {"name": one.name, "pem": str(pem), "pkcs12": str(bundle)}


def _write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file at once, so that nobody reads half of it."""
    part = path.with_name(f"{path.name}.part")
    with contextlib.suppress(FileNotFoundError):
        part.unlink()
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "wb") as file:
        file.write(data)
    part.replace(path)
