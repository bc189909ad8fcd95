"""Guards: which requests are let in. Pure.

A page of somebody else in the same browser may send requests here, or have its own name resolve to our address (DNS
rebinding). So the Host must be a name that this console has or an address, which no foreign page has as its name; a
change must come from a page of ours, by its Origin and by a token that only our pages know.
"""

import hashlib
import hmac
import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from moldau.console.web.refusing import FORBIDDEN, PageRefusal

MISDIRECTED = 421
LOCALHOST = "localhost"
OUR_SITES = None, "same-origin", "none"
"""Values of Sec-Fetch-Site in requests of our own pages, for addresses that are typed, and (None) of programs."""


def host_name(authority: str) -> str:
    """The name or address in a Host header, in lower case and without the port; "" if there is none."""
    try:
        return (urlsplit(f"//{authority}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_host(headers: Mapping[str, str], names: Collection[str]) -> None:
    """Raises `PageRefusal` unless Host is one of these names, or an address."""
    name = host_name(headers.get("host", ""))
    if not name or not (name in names or is_address(name)):
        raise PageRefusal(
            MISDIRECTED,
            f"this console is not known as {name[:100]!r}: start it with --name, or open it by its address",
        )


def check_reader(headers: Mapping[str, str]) -> None:
    """Raises `PageRefusal` for what a page of another site, or of another port of this machine, loads as a picture,
    script or frame: it cannot read the answer, but could have searches carried out. Links from there are followed."""
    if headers.get("sec-fetch-site") not in OUR_SITES:
        is_link = (
            headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"
        )
        if not is_link:
            raise PageRefusal(FORBIDDEN, "this console answers its own pages, and not those of another site")


def check_origin(headers: Mapping[str, str]) -> None:
    """Raises `PageRefusal` if the request comes from a page that is not ours."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    is_foreign = site not in OUR_SITES
    if origin is not None:
        is_foreign = is_foreign or urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    if is_foreign:
        raise PageRefusal(FORBIDDEN, "this change was sent by a page of another site, and was not carried out")


class FormTokens:
    """The tokens in our forms, one for each session; `secret` is this process's."""

    def __init__(self, secret: bytes):
        self._secret = secret

    def of(self, session_id: str) -> str:
        return hmac.new(self._secret, session_id.encode(), hashlib.sha256).hexdigest()

    def check(self, session_id: str, given: str) -> None:
        """Raises `PageRefusal`."""
        if not hmac.compare_digest(self.of(session_id).encode(), given.encode("utf-8", "replace")):
            raise PageRefusal(FORBIDDEN, "this form is too old, or not one of this console: load its page again")
