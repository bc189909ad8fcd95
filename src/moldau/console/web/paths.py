"""Names in paths. A group may have any name: with `/`, or `..`, which browsers take for a step up, or none at all.

A name that is empty or begins with `.` or `~` has a `~` in front, and everything else that is not plain is quoted.
"""

from urllib.parse import quote

MARK = "~"


def in_path(name: str) -> str:
    """The name as a piece of a path."""
    marked = MARK + name if not name or name[0] in f".{MARK}" else name
    return quote(marked, safe="", errors="surrogatepass")


def from_path(piece: str) -> str:
    """The name that a decoded piece of a path stands for."""
    return piece.removeprefix(MARK)


def path_to(*pieces: str) -> str:
    """A path whose pieces are all quoted."""
    return "/" + "/".join(in_path(piece) for piece in pieces)
