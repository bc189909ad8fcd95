"""The keys that OAUTHBEARER's tokens are signed with: read from a file or URL at the start, and again now and then.

A login has them read again when it is time, and waits for that if they are twice as old: a key that its issuer has
withdrawn is not used for longer. A token that names an unknown key has the keys read again at once, but not more often
than the back-off allows. If they cannot be read, those before stay in use, and a line in the log says so. Redirections
are not followed.
"""

import asyncio
import http.client
import logging
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.notices import Notices
from moldau.runtime import Runtime
from moldau.transport.allowed_urls import check_allowed
from moldau.transport.sasl.exchange import Authenticated
from moldau.transport.token_sources import TOKEN_MODULE, https_context, module_options
from moldau.transport.tokens import TokenRules, UnknownKey, check_token, read_keys

URL = "sasl.oauthbearer.jwks.endpoint.url"
BYTES_MAX = 1 << 20
TIMEOUT_S = 10
WAIT_S = 2.0
"""How long a login waits for keys to take the place of very old ones."""
START_ATTEMPTS = 3
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
notices = Notices(logging.getLogger(__name__))


class TokenKeys:
    """Made in a thread: it reads the keys. Raises `ConfigError` unless signatures, issuer and audience of tokens can be
    checked."""

    def __init__(self, config: BrokerConfig, runtime: Runtime):
        url, issuer = config.sasl_oauthbearer_jwks_endpoint_url, config.sasl_oauthbearer_expected_issuer
        audiences = tuple(filter(None, config.sasl_oauthbearer_expected_audience or ()))
        for setting, value in (
            (URL, url),
            ("sasl.oauthbearer.expected.issuer", issuer),
            ("sasl.oauthbearer.expected.audience", audiences),
        ):
            if not value:
                raise ConfigError(f"OAUTHBEARER needs {setting}: without it, tokens of others would be taken")
        self._url = _checked(url or "")
        self._tls = _trusting(config) if urlsplit(self._url).scheme == "https" else None
        self._rules = TokenRules(
            issuer or "",
            audiences,
            config.sasl_oauthbearer_clock_skew_seconds,
            config.sasl_oauthbearer_sub_claim_name,
            config.sasl_oauthbearer_scope_claim_name,
        )
        self._refresh_ms = config.sasl_oauthbearer_jwks_endpoint_refresh_ms
        self._backoff_ms = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms
        self._backoff_max_ms = max(config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms, self._backoff_ms)
        self._runtime = runtime
        self._failures = 0
        self._reading: asyncio.Task[None] | None = None
        self._keys = self._first_read()
        self._read_ms = self._tried_ms = self._elapsed_ms()

    async def check(self, token: str) -> Authenticated:
        """Raises `TokenRefused`."""
        now_ms, elapsed_ms = self._runtime.clock.now_ms(), self._elapsed_ms()
        age_ms = elapsed_ms - self._read_ms
        if age_ms >= self._refresh_ms and self._may_read(elapsed_ms):
            self._begin_reading(elapsed_ms)
        if age_ms >= 2 * self._refresh_ms and self._reading is not None:
            await asyncio.wait([self._reading], timeout=WAIT_S)
        try:
            return check_token(token, self._keys, self._rules, now_ms)
        except UnknownKey:
            if self._reading is None and self._may_read(elapsed_ms):
                self._begin_reading(elapsed_ms)
            if self._reading is None:
                raise
            await asyncio.shield(self._reading)
            return check_token(token, self._keys, self._rules, now_ms)

    def _elapsed_ms(self) -> int:
        """The wall clock may be set back, and no key would be read until it has caught up."""
        return int(self._runtime.clock.elapsed_s() * 1000)

    def _may_read(self, elapsed_ms: int) -> bool:
        pause_ms = min(self._backoff_ms << min(self._failures, 20), self._backoff_max_ms)
        return elapsed_ms - self._tried_ms >= (pause_ms if self._failures else self._backoff_max_ms)

    def _begin_reading(self, elapsed_ms: int) -> None:
        if self._reading is None:
            self._tried_ms = elapsed_ms
            self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            self._keys = await self._runtime.run(self._keys_now)
            self._read_ms, self._failures = self._elapsed_ms(), 0
        except (OSError, ValueError) as error:
            self._failures += 1
            notices.warning("", "%s: %s. The keys read before stay in use", URL, error)
        finally:
            self._reading = None

    def _first_read(self) -> Any:
        for left in range(START_ATTEMPTS, 0, -1):
            try:
                return self._keys_now()
            except (OSError, ValueError) as error:
                if left == 1:
                    raise ConfigError(f"{URL}: {error}, so no token could be checked") from None
                time.sleep(self._backoff_ms / 1000)
        raise AssertionError("unreachable")

    def _keys_now(self) -> Any:
        return read_keys(_content(self._url, self._tls))


def _trusting(config: BrokerConfig) -> ssl.SSLContext:
    """The TLS to the server that has the keys. The login module may be another mechanism's. Raises `ConfigError`."""
    jaas = config.sasl_jaas_config or ""
    return https_context(module_options(jaas if TOKEN_MODULE in jaas else None, "sasl.jaas.config of OAUTHBEARER"))


def _checked(url: str) -> str:
    """Raises `ConfigError`."""
    parts = urlsplit(url)
    is_file = parts.scheme == "file" and parts.netloc in ("", "localhost") and bool(parts.path)
    is_web = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_file and not (is_web and parts.hostname):
        raise ConfigError(f"{URL} must be an https:// or file:// URL (http:// for this machine only)")
    check_allowed(URL, url)
    return url


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _content(url: str, tls: ssl.SSLContext | None) -> bytes:
    """Raises `OSError`, `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        with Path(unquote(parts.path)).open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    else:
        opener = urllib.request.build_opener(_NoRedirection, urllib.request.HTTPSHandler(context=tls))
        try:
            with opener.open(url, timeout=TIMEOUT_S) as reply:
                content = reply.read(BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            raise OSError(f"the server answers with the status {error.code}") from None
        except urllib.error.URLError as error:
            raise OSError(f"the server cannot be reached: {error.reason}") from None
        except http.client.HTTPException as error:
            raise OSError(f"the server does not answer by HTTP, or not in full: {error!r}") from None
    if len(content) > BYTES_MAX:
        raise ValueError(f"it has more than {BYTES_MAX} bytes")
    return content
