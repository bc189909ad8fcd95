"""What protects a broker under test: certificates made for it, users with passwords, access rights.

The certificates are made when the broker starts for the first time, by an authority of this process, and are on disk
only as the file that clients trust it by, in a temporary folder.
"""

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moldau.client.administration.acls import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, Acl
from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.acl_changes import AclChanges
from moldau.cluster.state.image import Image
from moldau.cluster.users.changes import CredentialChange, UserChanges
from moldau.errors import ConfigError, KafkaError
from moldau.security.selecting import Invalid, made
from moldau.transport.sasl.scram import HASHES, ITERATIONS_MIN, SALT_BYTES, credential, salted_password

if TYPE_CHECKING:
    from moldau.transport.authority import CertificateAuthority

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_one_makes = threading.Lock()
MECHANISMS = ("PLAIN", *HASHES)
HOST = "localhost"
OF_BROKERS = "moldau-testing-broker"
"""The user that the brokers of a cluster log in at each other as."""
_OF_JAAS = frozenset(" \t\r\n{};=\"'\\/")


class BrokerSecurity:
    """Of one broker, or of a cluster. Raises `ConfigError`."""

    def __init__(self, tls: bool, users: Mapping[str, str] | None, acls: Sequence[Acl] | None):
        self._tls = tls
        self._users = dict(users or {})
        self._acls = acls
        self._folder: Path | None = None
        self._secret = secrets.token_hex(16)
        for user, password in self._users.items():
            if not user or not password or _OF_JAAS & set(user):
                raise ConfigError("users maps names without spaces and quotes to passwords, and neither is empty")
        wrong = [acl for acl in acls or () if not isinstance(acl, Acl)]
        if wrong:
            raise ConfigError(f"acls takes moldau.admin.Acl objects, not {wrong[0]!r}")

    @property
    def brokers(self) -> list[str]:
        """The principals that brokers of a cluster have among themselves."""
        if self._users:
            return [f"User:{OF_BROKERS}"]
        return [f"User:CN={HOST}"] if self._tls else []

    @property
    def protocol(self) -> str:
        """The security protocol of the listener."""
        if self._users:
            return "SASL_SSL" if self._tls else "SASL_PLAINTEXT"
        return "SSL" if self._tls else "PLAINTEXT"

    def settings(self) -> dict[str, str]:
        """The broker's settings."""
        settings = {"security.inter.broker.protocol": self.protocol}
        if self._tls:
            certified = authority().for_host([HOST])
            settings["ssl.keystore.key"] = certified.key.decode()
            settings["ssl.keystore.certificate.chain"] = (certified.certificate + certified.authority).decode()
            settings["ssl.truststore.certificates"] = certified.authority.decode()
            settings["ssl.client.auth"] = "requested"
        if self._users:
            known = {**self._users, OF_BROKERS: self._secret}
            users = " ".join(f'user_{name}="{_quoted(password)}"' for name, password in known.items())
            own = f'username="{OF_BROKERS}" password="{self._secret}"'
            settings["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            settings["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
            listener = f"listener.name.{self.protocol.lower()}"
            settings[f"{listener}.plain.sasl.jaas.config"] = f"{PLAIN_MODULE} required {own} {users};"
        return settings

    def of_client(self, user: str | None, mechanism: str) -> dict[str, str]:
        """The settings of a client, without the brokers."""
        settings = {"security.protocol": self.protocol}
        if self._tls:
            settings["ssl.ca.location"] = str(self._file("ca.pem", authority().certificate))
        if self._users:
            name = next(iter(self._users)) if user is None else user
            if name not in self._users:
                raise ConfigError(f"this broker has no user {name!r}, only {', '.join(self._users)}")
            if mechanism not in MECHANISMS:
                raise ConfigError(f"this broker has no mechanism {mechanism!r}, only {', '.join(MECHANISMS)}")
            login = {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": self._users[name]}
            return {**settings, **login}
        if user is not None:
            if not self._tls:
                raise ConfigError("this broker has no users: start it with users={...}, or with tls=True")
            path = self._file(f"client-{quote(user, safe='')}.pem", authority().for_user(user).chain)
            settings |= {"ssl.certificate.location": str(path), "ssl.key.location": str(path)}
        return settings

    async def apply(self, cluster: Cluster) -> None:
        """Give users their credentials of SCRAM, and make the ACLs. Raises `KafkaError`, `ConfigError`."""
        for mechanism in HASHES if self._users else ():
            salt = os.urandom(SALT_BYTES)
            changes = [
                CredentialChange(
                    user,
                    mechanism,
                    credential(mechanism, salt, ITERATIONS_MIN, salted_password(mechanism, text, salt, ITERATIONS_MIN)),
                )
                for user, text in self._users.items()
            ]
            await UserChanges(cluster.queue).alter(changes)
        wanted = [(acl, _known(acl)) for acl in self._acls or ()]
        for acl, known in wanted:
            if isinstance(known, Invalid):
                raise ConfigError(f"{acl!r} cannot be made: {known.message}")
        full = await AclChanges(cluster.metadata, cluster.queue).create([known for _, known in wanted])
        for refusal in full.values():
            raise KafkaError(refusal.code, refusal.message)

    def is_known_to(self, image: Image) -> bool:
        """Whether a broker with that image applies the ACLs."""
        return all(known[1] in image.acls.get(known[0], ()) for known in map(_known, self._acls or ()))

    def close(self) -> None:
        """Remove the files for clients."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _file(self, name: str, content: bytes) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="moldau-testing-"))
        path = self._folder / name
        if not path.exists():
            path.write_bytes(content)
        return path


def authority() -> "CertificateAuthority":
    """The authority of this process. Raises `ConfigError` without the library cryptography."""
    with _one_makes:  # brokers of a cluster start at the same time
        return _authority()


@cache
def _authority() -> "CertificateAuthority":
    from moldau.transport.authority import CertificateAuthority

    return CertificateAuthority.new("Moldau testing CA")


def _known(acl: Acl) -> Any:
    return made(
        RESOURCE_TYPES[acl.resource_type],
        acl.resource,
        PATTERN_TYPES[acl.pattern],
        acl.principal,
        acl.host,
        OPERATIONS[acl.operation],
        PERMISSIONS[acl.permission],
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
