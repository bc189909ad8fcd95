"""Sessions: whose browser it is, and the clients that ask the cluster for its user.

Without logins all browsers share one cluster access, and a session is no more than its id in a cookie. With logins a
session has the clients of its user, with the password, in memory only. It ends when it is idle for `IDLE_S` or older
than `AGE_S`, at logout, and when too many others are in use: first those of the same user. Its streams end with it.
What an open page asks for by itself is no use of the session.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from moldau.console.asking.cluster_admin import ClusterAdmin

IDLE_S, AGE_S = 2 * 3_600.0, 12 * 3_600.0
LOGGED_IN_MAX, OF_A_USER_MAX = 100, 10
ID_BYTES = 24
ID_CHARACTERS_MAX = 64


@dataclass
class ConsoleSession:
    """`admin` is None before the login; `user` is "" where nobody logs in."""

    id: str
    admin: ClusterAdmin | None
    user: str = ""
    began_s: float = 0.0
    seen_s: float = 0.0
    is_new: bool = False
    streams: set["asyncio.Task[None]"] = field(default_factory=set)
    """Searches, exports and live tails that run for it."""


class ConsoleSessions:
    """`shared` is the access of everybody where nobody logs in, else None. `now_s` is a monotonic clock. `port` is in
    the cookie's name, because browsers share cookies among the ports of a host."""

    def __init__(self, shared: ClusterAdmin | None, now_s: Callable[[], float], port: int, *, secure: bool):
        self._shared = shared
        self._now_s = now_s
        self._secure = secure
        self._name = f"{'__Host-' if secure else ''}moldau-console-{port}"
        self._logged_in: dict[str, ConsoleSession] = {}

    def of(self, cookies: str, *, is_used: bool = True) -> ConsoleSession:
        """The session that a Cookie header names; a new one if it names none that is in use. `is_used`: whether it is
        not idle from now on."""
        given = _value(cookies, self._name)
        now_s = self._now_s()
        found = self._logged_in.get(given)
        if found is not None and now_s - found.seen_s < IDLE_S and now_s - found.began_s < AGE_S:
            if is_used:
                found.seen_s = now_s
            return found
        if given and found is None:
            return ConsoleSession(given, self._shared)
        return ConsoleSession(secrets.token_urlsafe(ID_BYTES), self._shared, is_new=True)

    async def log_in(self, user: str, admin: ClusterAdmin) -> ConsoleSession:
        """A session under a new id: the one before the login may be known to others."""
        await self.end_old()
        while len(own := [one for one in self._logged_in.values() if one.user == user]) >= OF_A_USER_MAX:
            await self.log_out(min(own, key=lambda one: one.seen_s))
        while len(self._logged_in) >= LOGGED_IN_MAX:
            await self.log_out(min(self._logged_in.values(), key=lambda one: one.seen_s))
        now_s = self._now_s()
        made = ConsoleSession(secrets.token_urlsafe(ID_BYTES), admin, user, now_s, now_s, is_new=True)
        self._logged_in[made.id] = made
        return made

    async def log_out(self, session: ConsoleSession) -> None:
        if self._logged_in.pop(session.id, None) is None:
            return
        for stream in session.streams:
            stream.cancel()
        if session.admin is not None:
            await session.admin.close()

    async def end_old(self) -> None:
        """End sessions that were idle for too long, or are too old."""
        now_s = self._now_s()
        for one in [*self._logged_in.values()]:
            if now_s - one.seen_s >= IDLE_S or now_s - one.began_s >= AGE_S:
                await self.log_out(one)

    async def close(self) -> None:
        for one in [*self._logged_in.values()]:
            await self.log_out(one)

    def cookie(self, session: ConsoleSession) -> str:
        """The value of Set-Cookie: no script reads it, and no other site's form or frame sends it."""
        return f"{self._name}={session.id}; Path=/; HttpOnly; SameSite=Lax{'; Secure' if self._secure else ''}"


def _value(cookies: str, name: str) -> str:
    """The cookie with this name if it may be an id of ours, else ""."""
    text = ""
    for piece in cookies.split(";"):
        if piece.strip().partition("=")[0] == name:
            text = piece.strip().partition("=")[2]
    return text if len(text) <= ID_CHARACTERS_MAX and text.replace("-", "").replace("_", "").isalnum() else ""
