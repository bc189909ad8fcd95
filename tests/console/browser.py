"""A browser without a screen: it keeps cookies, follows redirections and sends the token of the form it has seen."""

import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import Self
from urllib.parse import urlencode, urlsplit

from harness.patience import stretched

TOKEN = re.compile(r'name="csrf" value="([0-9a-f]+)"')


@dataclass
class Seen:
    """An answer; `text` is its body without tags and with its entities resolved."""

    status: int
    headers: Mapping[str, str]
    html: str

    @property
    def text(self) -> str:
        body = re.sub(r"<(script|style|datalist)\b.*?</\1>", "", self.html, flags=re.S)
        return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body))).strip()


class ScreenlessBrowser:
    """Use it in `with`."""

    def __init__(self, url: str, **headers: str):
        self.url = url
        self.headers = headers
        self.cookies: dict[str, str] = {}
        self.token = ""
        self.seen: Seen | None = None
        """The latest page."""
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=stretched(30))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str, **headers: str) -> Seen:
        return self._followed(self._ask("GET", path, None, headers))

    def post(self, path: str, fields: Mapping[str, str], *, follows: bool = True, **headers: str) -> Seen:
        form = {"csrf": self.token, **fields}
        seen = self._ask("POST", path, urlencode(form), headers)
        return self._followed(seen) if follows else seen

    def _followed(self, seen: Seen) -> Seen:
        while seen.status == 303:
            seen = self._ask("GET", seen.headers["location"], None, {})
        self.seen = seen
        return seen

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Seen:
        sent = {name.replace("_", "-"): value for name, value in {**self.headers, **headers}.items()}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, path, body, sent)
        answer = self._connection.getresponse()
        html = answer.read().decode()
        for cookie in answer.headers.get_all("set-cookie") or []:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        if found := TOKEN.search(html):
            self.token = found[1]
        return Seen(answer.status, {name.lower(): value for name, value in answer.headers.items()}, html)
