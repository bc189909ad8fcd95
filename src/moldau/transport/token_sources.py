"""Where the tokens of OAUTHBEARER come from on the side that logs in: a file, or an authorization server.

An authorization server is asked as OAuth says (client credentials, RFC 6749 section 4.4). Another token is asked for
when most of the time of the one before is over; that one stays in use until its end if the server does not answer.
Neither a token nor a secret is in any error or log line.
"""

import base64
import json
import logging
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.monotonic import monotonic_s
from moldau.notices import Notices
from moldau.transport.allowed_urls import check_allowed
from moldau.transport.jaas import module_of
from moldau.transport.key_stores import Store, trust

TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
TOKEN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
TIMEOUT_S: Final = 10.0
BRIEFLY_S: Final = 2.0
"""How long the server is waited for while the token before is valid."""
ANSWER_BYTES_MAX: Final = 1 << 20
USED_FOR: Final = 0.8
"""The part of a token's time after which another one is asked for."""
AGAIN_S: Final = 5.0
"""The pause before a server that did not answer is asked again, while the token before is valid."""
NO_EXTENSIONS: Mapping[str, str] = MappingProxyType({})
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_EXTENSION: Final = "extension_"
_notices = Notices(logging.getLogger(__name__))


class Token(NamedTuple):
    """A token, and what is sent beside it."""

    text: str
    extensions: Mapping[str, str] = NO_EXTENSIONS

    def __repr__(self) -> str:
        return "Token(...)"


class Tokens(Protocol):
    """A source of tokens."""

    def token(self) -> Token:
        """The token for a new login; blocks. Raises `KafkaError`."""


class ClientCredentials(NamedTuple):
    """Who asks an authorization server, and for which scope."""

    client_id: str | None
    secret: str | None
    scope: str | None

    def __repr__(self) -> str:
        return f"ClientCredentials({self.client_id!r})"


def source_at(
    url: str,
    asking: ClientCredentials,
    extensions: Mapping[str, str],
    options: Mapping[str, str],
    ca: str | None = None,
) -> Tokens:
    """The source of tokens at that URL. `options` are those of Java's login module: `clientId`, `clientSecret` and
    `scope` where `asking` has none, and `ssl.truststore.*`; `ca` is a file in PEM in their place. Raises
    `ConfigError`, without secrets."""
    check_allowed(TOKEN_URL, url)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenFile(Path(unquote(parts.path)), extensions)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
        raise ConfigError(f"{TOKEN_URL}={url!r} must be an https or file URL: the secret is sent there")
    complete = ClientCredentials(
        asking.client_id or options.get("clientId"),
        asking.secret or options.get("clientSecret"),
        asking.scope or options.get("scope"),
    )
    if not complete.client_id or not complete.secret:
        raise ConfigError(
            f"{TOKEN_URL} needs sasl.oauthbearer.client.credentials.client.id and"
            " sasl.oauthbearer.client.credentials.client.secret"
        )
    return AuthorizationServer(url, complete, extensions, https_context(options, ca))


def module_options(jaas: str | None, setting: str) -> Mapping[str, str]:
    """The options of a broker's login module for OAUTHBEARER, which may be missing here, and may not in Kafka. Raises
    `ConfigError`."""
    if not jaas:
        return {}
    module = module_of(jaas, setting)
    if module.name != TOKEN_MODULE:
        raise ConfigError(f"{setting} is for {module.name[:100]}; OAUTHBEARER needs {TOKEN_MODULE}")
    return module.options


def extensions_in(options: Mapping[str, str]) -> dict[str, str]:
    """The extensions that Java's login module has as options, `extension_NAME`."""
    return {name.removeprefix(_EXTENSION): text for name, text in options.items() if name.startswith(_EXTENSION)}


def https_context(options: Mapping[str, str], ca: str | None = None) -> ssl.SSLContext:
    """The TLS to an authorization server: it is trusted by the file `ca` in PEM, or by the options `ssl.truststore.*`
    of Java's login module, or else by the system's authorities. Raises `ConfigError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    location = options.get("ssl.truststore.location")
    if ca is not None:
        trust(context, Store(ca, "PEM", None, "https.ca"))
    elif location:
        kind, password = options.get("ssl.truststore.type"), options.get("ssl.truststore.password")
        trust(context, Store(location, kind, password, "ssl.truststore"))
    else:
        context.load_default_certs()
    return context


class TokenFile(NamedTuple):
    """A file that something else writes tokens into."""

    path: Path
    extensions: Mapping[str, str]

    def token(self) -> Token:
        try:
            with self.path.open(encoding="ascii") as file:
                return Token(file.read(ANSWER_BYTES_MAX).strip(), self.extensions)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise KafkaError(
                ErrorCode.SASL_AUTHENTICATION_FAILED, f"cannot read the token in {self.path}: {why}"
            ) from None


class AuthorizationServer:
    """The token of one client; several threads may ask for it."""

    def __init__(self, url: str, asking: ClientCredentials, extensions: Mapping[str, str], tls: ssl.SSLContext):
        self._url = url
        self._client_id = asking.client_id
        user = f"{quote_plus(asking.client_id or '')}:{quote_plus(asking.secret or '')}"
        self._headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(user.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": "moldau",
        }
        form = {"grant_type": "client_credentials", **({"scope": asking.scope} if asking.scope else {})}
        self._body = urlencode(form).encode()
        self._extensions = extensions
        self._tls = tls
        self._one_asks = threading.Lock()
        self._token: str | None = None
        self._again_s = self._until_s = 0.0

    def token(self) -> Token:
        with self._one_asks:
            began_s = monotonic_s()
            if self._token is None or began_s >= self._again_s:
                has_one = self._token is not None and began_s < self._until_s
                try:
                    self._token, lasts_s = self._asked(BRIEFLY_S if has_one else TIMEOUT_S)
                except KafkaError as error:
                    if not has_one:
                        raise
                    self._again_s = min(monotonic_s() + AGAIN_S, self._until_s)
                    _notices.warning(self._url, "%s. The token before stays in use until its end", error)
                else:
                    self._again_s, self._until_s = began_s + lasts_s * USED_FOR, began_s + lasts_s
            assert self._token is not None, "without one the failure was raised"
            return Token(self._token, self._extensions)

    def _asked(self, timeout_s: float) -> tuple[str, float]:
        """A new token, and how many seconds it lasts. Raises `KafkaError`; it is retriable if the server does not
        answer."""
        from http.client import HTTPException
        from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

        opener = OpenerDirector()  # it follows no redirect, which would take the secret elsewhere
        for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler(context=self._tls)):
            opener.add_handler(handler)
        try:
            request = Request(self._url, self._body, self._headers, method="POST")
            with opener.open(request, timeout=timeout_s) as reply:
                status, content = reply.status, reply.read(ANSWER_BYTES_MAX)
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self._url} does not issue a token: {why}") from None
        if status >= 500:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self._url} does not issue a token: HTTP {status}")
        fields = _fields(content)
        token, lasts_s = fields.get("access_token"), fields.get("expires_in")
        if status != 200 or not isinstance(token, str):
            said = fields.get("error")
            why = said[:100] if isinstance(said, str) and said.isprintable() else f"HTTP {status}"
            raise KafkaError(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                f"{self._url} refuses a token to the client {self._client_id}: {why}",
            )
        return token, float(lasts_s) if isinstance(lasts_s, int | float) and 0 < lasts_s < 1e9 else 0.0


def _fields(content: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}
