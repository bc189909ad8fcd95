"""Where a client's tokens of OAUTHBEARER come from: a function of the program's, a file, or an authorization server."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from moldau.client.security.security_settings import SecuritySettings
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.transport.jaas import LoginModule
from moldau.transport.token_sources import (
    TOKEN_URL,
    ClientCredentials,
    Token,
    Tokens,
    extensions_in,
    source_at,
)


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
        raise ConfigError(f"OAUTHBEARER needs tokens: give {TOKEN_URL}, or a function as sasl_oauth_token_provider")
    asking = ClientCredentials(
        settings.sasl_oauthbearer_client_credentials_client_id,
        settings.sasl_oauthbearer_client_credentials_client_secret,
        settings.sasl_oauthbearer_scope,
    )
    return source_at(url, asking, extensions, options, settings.https_ca_location)


def _extensions(settings: SecuritySettings, options: Mapping[str, str]) -> dict[str, str]:
    named = extensions_in(options)
    for pair in filter(None, (settings.sasl_oauthbearer_extensions or "").split(",")):
        name, equals, value = pair.strip().partition("=")
        if not equals:
            raise ConfigError(f"sasl.oauthbearer.extensions is a list of name=value, and {name!r} is not one")
        named[name] = value
    return named


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
