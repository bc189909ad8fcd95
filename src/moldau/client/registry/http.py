"""Requests to a registry over HTTP: several addresses, time-outs, TLS; only the standard library.

A request is made at one address after the other until one answers; nothing is tried twice. Answers 502, 503 and 504
come from a proxy or a registry that cannot serve, so the next address is asked. Redirects are not followed: they would
take the credentials elsewhere.
"""

import json
import ssl
from typing import Any
from urllib.parse import unquote, urlsplit

from moldau.client.registry.failures import refused
from moldau.errors import ConfigError, RegistryError, RegistryUnavailable
from moldau.monotonic import monotonic_s
from moldau.transport.client_tls import ClientTls

ANSWER_BYTES_MAX = 16 * 1024 * 1024
ELSEWHERE = (502, 503, 504)
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class Addresses:
    """The addresses of one registry, and how to ask them."""

    def __init__(self, urls: list[str], headers: dict[str, str], tls: ClientTls | None, timeout_ms: int):
        self.urls = urls
        self._headers = {"Accept": f"{CONTENT_TYPE}, application/json", "User-Agent": "moldau", **headers}
        self._tls = tls
        self._timeout_s = timeout_ms / 1000
        self._first = 0

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON that the registry answers. Raises `RegistryError`."""
        failed = []
        for turn in range(len(self.urls)):
            at = (self._first + turn) % len(self.urls)
            url = self.urls[at]
            try:
                answer = self._ask(url, method, path, body)
            except RegistryUnavailable as error:
                failed.append(f"{url} ({error})")
                continue
            self._first = at
            return answer
        raise RegistryUnavailable(f"no schema registry answers: {'; '.join(failed)}")

    def _ask(self, url: str, method: str, path: str, body: Any) -> Any:
        from http.client import HTTPException
        from urllib.error import URLError
        from urllib.request import Request

        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if data is None else {**self._headers, "Content-Type": CONTENT_TYPE}
        until_s = monotonic_s() + self._timeout_s
        try:
            request = Request(f"{url}{path}", data, headers, method=method)
            with self._opener().open(request, timeout=self._timeout_s) as reply:
                status, content = reply.status, read(reply, until_s)
        except URLError as error:
            raise RegistryUnavailable(self._why(error.reason)) from None
        except (OSError, HTTPException) as error:
            raise RegistryUnavailable(self._why(error)) from None
        if status in ELSEWHERE:
            raise RegistryUnavailable(f"HTTP {status}")
        if not 200 <= status < 300:
            raise _refusal(url, status, content)
        return parsed(url, content)

    def _why(self, reason: object) -> str:
        if isinstance(reason, TimeoutError):
            return f"no answer within {self._timeout_s:g} s"
        if isinstance(reason, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {reason.verify_message}; ssl.ca.location names another authority"
        if isinstance(reason, OSError) and reason.strerror:
            return reason.strerror
        return str(reason) or type(reason).__name__

    def _opener(self) -> Any:
        """It returns answers of every status, and follows no redirect."""
        from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler

        opener = OpenerDirector()
        for handler in (
            ProxyHandler(),
            HTTPHandler(),
            HTTPSHandler(context=None if self._tls is None else self._tls.context()),
        ):
            opener.add_handler(handler)
        return opener


def read(reply: Any, until_s: float) -> bytes:
    """The body of an answer; bounded in bytes and in time. Raises `TimeoutError` and `RegistryError`."""
    parts, size = [], 0
    while part := reply.read1(65_536):
        parts.append(part)
        size += len(part)
        if size > ANSWER_BYTES_MAX:
            raise RegistryError(f"the schema registry's answer has more than {ANSWER_BYTES_MAX} bytes")
        if monotonic_s() > until_s:
            raise TimeoutError
    return b"".join(parts)


def parsed(url: str, data: bytes) -> Any:
    """The answer's JSON. Raises `RegistryError`."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise RegistryError(
            f"{url} did not answer with JSON as a schema registry does, but with {data[:60]!r}"
        ) from None


def _refusal(url: str, status: int, data: bytes) -> RegistryError:
    try:
        tree = json.loads(data)
        code, said = int(tree.get("error_code", 0)), str(tree.get("message", ""))
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        code, said = 0, ""
    return refused(url, status, code, said[:500])


def split_url(given: str) -> tuple[str, str | None]:
    """The address without credentials, and `user:password` if it has them. Raises `ConfigError`."""
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        raise ConfigError(f"schema.registry.url={given!r} is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"schema.registry.url={given!r} is not an address such as http://localhost:8081")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    address = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    user = None if parts.username is None else f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return address, user
