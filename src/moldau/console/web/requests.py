"""`PageRequest`: a request as the pages see it, after the guards let it in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.console.web.refusing import PageRefusal, refusal_of
from moldau.errors import MoldauError

if TYPE_CHECKING:
    from moldau.console.asking.cluster_admin import ClusterAdmin
    from moldau.console.web.sessions import ConsoleSession

NUMBER_DIGITS_MAX = 19


@dataclass(frozen=True)
class PageRequest:
    """`parts` are the decoded pieces of the path; `form` has the fields of a POST; `headers` have names in lower
    case; `target` is the path with its query, as text."""

    method: str
    parts: tuple[str, ...]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    session: "ConsoleSession"
    target: str
    form: Mapping[str, list[str]] = field(default_factory=dict)
    right: str = ""
    """The right that the page needs."""
    address: str = ""
    """Where the browser is; behind a proxy on this machine what X-Forwarded-For says."""

    @property
    def admin(self) -> "ClusterAdmin":
        """The clients of the request's user, who is logged in where logins are needed."""
        assert self.session.admin is not None
        return self.session.admin

    @property
    def is_fragment(self) -> bool:
        """Whether a part of a page is asked for, by htmx."""
        return self.headers.get("hx-request") == "true"

    def said(self, failure: MoldauError) -> str:
        """The sentence about a refusal, with the right that is missing if it was for lack of one."""
        return str(refusal_of(failure, self.right))

    def text(self, name: str, default: str = "") -> str:
        """A field of the query."""
        return self.query.get(name, [default])[0]

    def number(self, name: str, default: int, low: int = 0, high: int = 2**63 - 1) -> int:
        """A number in the query; the default if the field is missing or empty. Raises `PageRefusal`."""
        text = self.text(name).strip()
        return whole_number(name, text, low, high) if text else default

    def field(self, name: str) -> str:
        """A field of the form, "" if it is missing."""
        return self.form.get(name, [""])[0]

    def is_checked(self, name: str) -> bool:
        return bool(self.field(name))


def whole_number(name: str, text: str, low: int, high: int) -> int:
    """Raises `PageRefusal`."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= NUMBER_DIGITS_MAX and low <= int(text) <= high:
        return int(text)
    raise PageRefusal(400, f"{name} is not a whole number from {low} to {high}: {text[:40]!r}")
