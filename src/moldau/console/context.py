"""`ConsoleContext`: what all pages share, and how one is made from a template."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from moldau.console.asking.request_times import ApiTimes
from moldau.console.search.decoding import RegistryDecoder
from moldau.console.search.encoding import RegistryEncoder
from moldau.console.search.masking import MaskRules
from moldau.console.settings import ConsoleSettings
from moldau.console.web.answers import PageAnswer
from moldau.console.web.assets import Assets
from moldau.console.web.attempts import LoginAttempts
from moldau.console.web.guards import FormTokens
from moldau.console.web.refusing import FORBIDDEN, PageRefusal
from moldau.console.web.rendering import Rendering
from moldau.console.web.requests import PageRequest
from moldau.console.web.sessions import ConsoleSessions
from moldau.console.web.slots import StreamSlots
from moldau.monotonic import monotonic_s
from moldau.version import VERSION

THEMES = ("light", "dark")
THEME_COOKIE = "moldau-theme"
DONE = {
    "created": "The topic was created.",
    "deleted": "The topic was deleted.",
    "changed": "The setting was changed.",
    "expanded": "The topic has more partitions now.",
    "reset": "The offsets of the group were moved.",
    "offsets-deleted": "The offsets of the group in that topic were deleted.",
    "acl-added": "The right was added.",
    "acl-removed": "The right was removed.",
    "quota": "The quota was changed.",
    "cancelled": "The move was cancelled.",
    "aborted": "The transaction was aborted in that partition.",
    "group-deleted": "The group was deleted, with its offsets.",
}
"""What a page says after a change: the path has the word, never the sentence."""


SEARCHES_MAX, TAILS_MAX = 8, 20
"""A live tail waits most of the time; it takes no search's place."""
LOGINS_AT_ONCE, LOGINS_WAITING_MAX = 4, 20
"""So many passwords are checked at once, since guessing is to take long; those that are checked or wait for it."""


class NavigationEntry(NamedTuple):
    """A link of the side bar; `key` is what follows `g` on the keyboard."""

    path: str
    title: str
    key: str


NAVIGATION = (
    NavigationEntry("/", "Overview", "o"),
    NavigationEntry("/brokers", "Brokers", "b"),
    NavigationEntry("/topics", "Topics", "t"),
    NavigationEntry("/groups", "Groups", "g"),
    NavigationEntry("/transactions", "Transactions", "x"),
    NavigationEntry("/acls", "Access", "a"),
    NavigationEntry("/schemas", "Schemas", "s"),
    NavigationEntry("/moves", "Moves", "m"),
    NavigationEntry("/mirrors", "Mirrors", "r"),
)


class Paging(NamedTuple):
    """A part of a list: `total` rows, those from `first` on are shown, `size` of them at most."""

    first: int
    size: int
    total: int

    @property
    def last(self) -> int:
        return min(self.first + self.size, self.total)

    @property
    def previous(self) -> int | None:
        return max(self.first - self.size, 0) if self.first else None

    @property
    def next(self) -> int | None:
        return self.last if self.last < self.total else None

    def of(self, rows: Sequence[Any]) -> Sequence[Any]:
        return rows[self.first : self.last]


def paging(request: PageRequest, size: int, total: int) -> Paging:
    """The part that the request asks for by `from`; the last part if it asks for more than there is."""
    first = request.number("from", 0)
    return Paging(first if first < total else max(total - 1, 0) // size * size, size, total)


class ConsoleContext:
    """What all pages share."""

    def __init__(self, settings: ConsoleSettings, sessions: ConsoleSessions, tokens: FormTokens, *, has_logins: bool):
        self.settings = settings
        self.sessions = sessions
        self.tokens = tokens
        self.has_logins = has_logins
        self.checked_at_once = asyncio.Semaphore(LOGINS_AT_ONCE)
        self.assets = Assets()
        self.masks = MaskRules(settings.masks)
        self.decoder = None if settings.registry is None else RegistryDecoder(settings.registry)
        self.encoder = None if settings.registry is None else RegistryEncoder(settings.registry)
        self.request_times = ApiTimes(settings.metrics, monotonic_s)
        self.searches = StreamSlots(SEARCHES_MAX, "searches and exports run")
        self.tails = StreamSlots(TAILS_MAX, "live tails run")
        self.logins = StreamSlots(LOGINS_WAITING_MAX, "logins are being checked")
        self.attempts = LoginAttempts()
        self._rendering = Rendering(
            {
                "version": VERSION,
                "navigation": NAVIGATION,
                "read_only": settings.read_only,
                "has_logins": has_logins,
            },
            self.assets.path,
        )

    def refuse_when_read_only(self) -> None:
        """Raises `PageRefusal`."""
        if self.settings.read_only:
            raise PageRefusal(FORBIDDEN, "this console is read-only: it was started with --read-only")

    def page(self, request: PageRequest, template: str, status: int = 200, **values: Any) -> PageAnswer:
        """The page, or the part of one, that the template makes of these values."""
        body = self._rendering.render(
            template,
            request=request,
            theme=_theme(request),
            user=request.session.user,
            csrf=self.tokens.of(request.session.id),
            done=DONE.get(request.text("done"), ""),
            silent=[] if request.session.admin is None else sorted(request.session.admin.silent),
            **values,
        )
        return PageAnswer(body, status)


def _theme(request: PageRequest) -> str:
    """The theme that the user has chosen, "" for the system's."""
    for piece in request.headers.get("cookie", "").split(";"):
        name, _, value = piece.strip().partition("=")
        if name == THEME_COOKIE and value in THEMES:
            return value
    return ""
