"""Assets: scripts and styles in files of their own, under names with their hash, so that browsers keep them."""

import hashlib
from pathlib import Path

from moldau.console.web.answers import PageAnswer
from moldau.console.web.refusing import NOT_FOUND, PageRefusal

FOLDER = Path(__file__).parents[1] / "assets"
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_KEPT = (b"cache-control", b"public, max-age=31536000, immutable")
DIGITS = 12


class Assets:
    """All files of the folder with one of these media types, read once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str]] = {}
        self._paths: dict[str, str] = {}
        for file in sorted(FOLDER.iterdir()):
            if file.suffix in MEDIA_TYPES:
                content = file.read_bytes()
                served = f"{hashlib.sha256(content).hexdigest()[:DIGITS]}-{file.name}"
                self._files[served] = content, MEDIA_TYPES[file.suffix]
                self._paths[file.name] = f"/assets/{served}"

    def path(self, name: str) -> str:
        """The path under which the file with this name is served."""
        return self._paths[name]

    def answer(self, served: str) -> PageAnswer:
        """Raises `PageRefusal`."""
        if served not in self._files:
            raise PageRefusal(NOT_FOUND, "there is no such file: load the page again")
        content, media_type = self._files[served]
        return PageAnswer(content, media_type=media_type, headers=[_KEPT])
