"""Where the tokens of OAUTHBEARER come from: a function of the program's, a file, or an authorization server.

An authorization server is asked as OAuth says (client credentials, RFC 6749 section 4.4); its token is used until most
of its time is over. Neither a token nor a secret is in any error.
"""

import asyncio
import base64
import inspect
import json
import ssl
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

from moldau.client.security.security_settings import SecuritySettings
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.monotonic import monotonic_s
from moldau.transport.allowed_urls import check_allowed
from moldau.transport.jaas import LoginModule

TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 1 << 20
USED_FOR = 0.8
"""The part of a token's time after which another one is asked for."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EXTENSION = "extension_"
NO_EXTENSIONS: Mapping[str, str] = MappingProxyType({})


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


def token_source(settings: SecuritySettings, module: LoginModule | None) -> Tokens:
    """The source that the settings name, of which `module` is Java's login module. Raises `ConfigError`."""
    options: Mapping[str, str] = {} if module is None else module.options
    extensions = _extensions(settings, options)
    if settings.sasl_oauth_token_provider is not None:
        return _Called(_provided(settings.sasl_oauth_token_provider), extensions)
    if settings.oauth_cb is not None:
        function, argument = settings.oauth_cb, settings.sasl_oauthbearer_config or ""
        if not callable(function):
            raise ConfigError("oauth_cb is not a function")
        return _Called(lambda: function(argument), extensions)
    url = settings.sasl_oauthbearer_token_endpoint_url
    if url is None:
        raise ConfigError(
            "OAUTHBEARER needs tokens: give sasl.oauthbearer.token.endpoint.url, or a function as"
            " sasl_oauth_token_provider"
        )
    check_allowed("sasl.oauthbearer.token.endpoint.url", url)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _File(Path(unquote(parts.path)), extensions)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ConfigError(
            f"sasl.oauthbearer.token.endpoint.url={url!r} must be an https or file URL: the secret is sent there"
        )
    client_id = settings.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = settings.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
    if not client_id or not secret:
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url needs sasl.oauthbearer.client.credentials.client.id and"
            " sasl.oauthbearer.client.credentials.client.secret"
        )
    scope = settings.sasl_oauthbearer_scope or options.get("scope")
    return AuthorizationServer(url, client_id, secret, scope, extensions, _trusting(settings.https_ca_location))


def _extensions(settings: SecuritySettings, options: Mapping[str, str]) -> dict[str, str]:
    named = {name.removeprefix(_EXTENSION): text for name, text in options.items() if name.startswith(_EXTENSION)}
    for pair in filter(None, (settings.sasl_oauthbearer_extensions or "").split(",")):
        name, equals, value = pair.strip().partition("=")
        if not equals:
            raise ConfigError(f"sasl.oauthbearer.extensions is a list of name=value, and {name!r} is not one")
        named[name] = value
    return named


def _trusting(ca_location: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_location)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a certificate in PEM"
        raise ConfigError(f"cannot use {ca_location}, which https.ca.location names: {why}") from None


def _provided(provider: Any) -> Callable[[], Any]:
    """kafka-python and aiokafka have objects with a method `token`."""
    method = getattr(provider, "token", None)
    function = method if callable(method) else provider
    if not callable(function):
        raise ConfigError("sasl_oauth_token_provider is neither a function nor an object with a method token()")
    return function  # type: ignore[no-any-return]


class _Called(NamedTuple):
    """A function of the program's; it looks after the time of its tokens by itself."""

    function: Callable[[], Any]
    extensions: Mapping[str, str]

    def token(self) -> Token:
        try:
            made = self.function()
            if inspect.isawaitable(made):
                made = asyncio.run(_awaited(made))
        except Exception as error:
            raise KafkaError(
                ErrorCode.SASL_AUTHENTICATION_FAILED, f"the function that makes tokens has failed: {error!r}"
            ) from error
        several = made if isinstance(made, tuple | list) else (made,)
        text, extensions = several[0] if several else None, several[3] if len(several) > 3 else None
        if not isinstance(text, str) or not isinstance(extensions, dict | None):
            raise KafkaError(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                "the function that makes tokens has returned neither a text nor a tuple that begins with one",
            )
        return Token(text, {**self.extensions, **(extensions or {})})


async def _awaited(made: Any) -> Any:
    return await made


class _File(NamedTuple):
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

    def __init__(
        self,
        url: str,
        client_id: str,
        secret: str,
        scope: str | None,
        extensions: Mapping[str, str],
        tls: ssl.SSLContext,
    ):
        self._url = url
        self._client_id = client_id
        user = f"{quote_plus(client_id)}:{quote_plus(secret)}"
        self._headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(user.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": "moldau",
        }
        form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
        self._body = urlencode(form).encode()
        self._extensions = extensions
        self._tls = tls
        self._one_asks = threading.Lock()
        self._token: str | None = None
        self._until_s = 0.0

    def token(self) -> Token:
        with self._one_asks:
            if self._token is None or monotonic_s() >= self._until_s:
                self._token, lasts_s = self._asked()
                self._until_s = monotonic_s() + lasts_s * USED_FOR
            return Token(self._token, self._extensions)

    def _asked(self) -> tuple[str, float]:
        """A new token, and how many seconds it lasts. Raises `KafkaError`; it is retriable if the server does not
        answer."""
        from http.client import HTTPException
        from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

        opener = OpenerDirector()  # it follows no redirect, which would take the secret elsewhere
        for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler(context=self._tls)):
            opener.add_handler(handler)
        try:
            request = Request(self._url, self._body, self._headers, method="POST")
            with opener.open(request, timeout=TIMEOUT_S) as reply:
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
