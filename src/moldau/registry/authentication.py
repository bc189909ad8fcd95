"""Whose request it is: checks passwords in threads, and remembers for a while which ones were right."""

import asyncio
import hashlib
import logging
import os
from pathlib import Path

from moldau.config.properties import read_properties
from moldau.errors import ConfigError
from moldau.monotonic import monotonic_s
from moldau.registry.access_rules import AccessRules, RequestRules, basic_credentials, unauthorized
from moldau.registry.http_messages import RestRequest
from moldau.registry.state import RegistryState

logger = logging.getLogger(__name__)

REMEMBERED_S = 300.0
REMEMBERED_MAX = 1_000
CHECKS_AT_ONCE = 4
LOOKED_AT_S = 5.0
"""How often the file is looked at for changes."""


class PasswordChecks:
    """The users of a file, which is read again when it changes. Raises `ConfigError` for one that is wrong."""

    def __init__(self, file: Path):
        self._file = file
        self._changed = self._stamp()
        self._looked_s = monotonic_s()
        self.rules = AccessRules(read_properties(file))
        self._right: dict[bytes, float] = {}
        self._secret = os.urandom(32)
        self._checks = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def user(self, request: RestRequest) -> str:
        """The user's name. Raises `Refused`."""
        self._look()
        given = basic_credentials(request.headers.get("authorization", ""))
        if given is None:
            raise unauthorized()
        name, password = given
        known = self.rules.user(name)
        kept = self.rules.anybody if known is None else known
        # Passwords are not kept: only what a secret of this process makes of them.
        mark = hashlib.blake2b(name.encode() + b"\0" + password, key=self._secret).digest() + kept.hash
        if known is not None and self._right.get(mark, 0.0) > monotonic_s():
            return name
        async with self._checks:
            is_right = await asyncio.to_thread(kept.matches, password)
        if known is None or not is_right:
            raise unauthorized()
        if len(self._right) >= REMEMBERED_MAX:
            self._right.clear()
        self._right[mark] = monotonic_s() + REMEMBERED_S
        return name

    def _look(self) -> None:
        if monotonic_s() < self._looked_s + LOOKED_AT_S:
            return
        self._looked_s = monotonic_s()
        stamp = self._stamp()
        if stamp == self._changed:
            return
        self._changed = stamp
        try:
            self.rules = AccessRules(read_properties(self._file))
        except (ConfigError, OSError) as wrong:
            logger.error("%s was changed and cannot be used, so the users stay as they were: %s", self._file, wrong)

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self._file.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size


class RegistryGuard:
    """Admits requests: by password, then by rules."""

    def __init__(self, file: Path, state: RegistryState):
        self._authentication = PasswordChecks(file)
        self._state = state

    async def admit(self, request: RestRequest) -> str:
        """The user, if the request is allowed. Raises `Refused`."""
        user = await self._authentication.user(request)
        self._rules.check(user, request)
        return user

    def check_registering(self, user: str, request: RestRequest) -> None:
        """Raise `Refused` if the user may only read the subject."""
        self._rules.check_registering(user, request)

    def may_read(self, user: str, subject: str) -> bool:
        return self._rules.may_read(user, subject)

    @property
    def _rules(self) -> RequestRules:
        return RequestRules(self._authentication.rules, self._state)
