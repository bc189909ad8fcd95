"""Names in paths. A group may have any name: with `/`, or `..`, which browsers take for a step up, or none at all.

A name that is empty or begins with `.` or `~` has a `~` in front, and everything else that is not plain is quoted.
"""

from urllib.parse import quote, urlsplit

MARK = "~"
TARGET_CHARACTERS_MAX = 8_000


def in_path(name: str) -> str:
    """The name as a piece of a path."""
    marked = MARK + name if not name or name[0] in f".{MARK}" else name
    return quote(marked, safe="", errors="surrogatepass")


def from_path(piece: str) -> str:
    """The name that a decoded piece of a path stands for."""
    return piece.removeprefix(MARK)


def own_path(target: str) -> str:
    """The target if it is a path of this console, else "/". A browser takes `//name` and `/\\name` for another host,
    whatever control characters are between."""
    is_own = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isascii()
    return target if is_own and target.isprintable() and len(target) <= TARGET_CHARACTERS_MAX else "/"


def path_of(url: str) -> str:
    """The path of an address, with its query; "" if it cannot be read."""
    try:
        found = urlsplit(url)
    except ValueError:
        return ""
    return f"{found.path}?{found.query}" if found.query else found.path


def path_to(*pieces: str) -> str:
    """A path whose pieces are all quoted."""
    return "/" + "/".join(in_path(piece) for piece in pieces)
