"""How a client proves who its user is: the exchange that each new connection begins with, made of the settings.

PLAIN and SCRAM need a user and password, from `sasl_username` and `sasl_password` or from a login module of Java's in
`sasl_jaas_config`. OAUTHBEARER needs tokens (`tokens.py`).
"""

import secrets
from collections.abc import Callable

from moldau.client.security.security_settings import MECHANISMS, OAUTHBEARER, PLAIN, SecuritySettings
from moldau.client.security.tokens import token_source
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.peers.sessions import ClientLogin
from moldau.transport.jaas import Login, LoginModule, module_of
from moldau.transport.sasl.exchange import ClientExchange
from moldau.transport.sasl.oauthbearer import OauthbearerClient
from moldau.transport.sasl.plain import PlainClient
from moldau.transport.sasl.scram import ScramClient
from moldau.transport.token_sources import Tokens

_MODULES = {
    "PlainLoginModule": (PLAIN,),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": (OAUTHBEARER,),
}
"""A class of Java's, without its package -> the mechanisms that it is for."""


def login_of(settings: SecuritySettings) -> ClientLogin | None:
    """None if the settings ask for no login. Raises `ConfigError`."""
    if not settings.uses_sasl:
        return None
    mechanism = (settings.sasl_mechanism or "").upper()
    assert mechanism in MECHANISMS, "checked with the settings"
    module = None
    if settings.sasl_jaas_config:
        module = module_of(settings.sasl_jaas_config, "sasl.jaas.config")
        check_module(module, mechanism)
    if mechanism == OAUTHBEARER:
        return ClientLogin(mechanism, _oauthbearer(token_source(settings, module)))
    login = _user(settings, module, mechanism)
    if mechanism == PLAIN:
        _refuse_unusable(lambda: PlainClient(login))
        return ClientLogin(mechanism, lambda: PlainClient(login))
    by_token = module is not None and module.options.get("tokenauth", "").lower() == "true"
    return ClientLogin(mechanism, lambda: ScramClient(mechanism, login, secrets.token_hex(20), by_token))


def check_module(module: LoginModule, mechanism: str) -> None:
    """Raise `ConfigError` unless a login module is one for that mechanism."""
    fitting = _MODULES.get(module.name.rpartition(".")[2])
    if fitting is None:
        raise ConfigError(f"sasl.jaas.config has the login module {module.name}; known are {', '.join(_MODULES)}")
    if mechanism not in fitting:
        raise ConfigError(
            f"sasl.jaas.config has a login module for {' or '.join(fitting)}, and sasl.mechanism is {mechanism}"
        )


def _user(settings: SecuritySettings, module: LoginModule | None, mechanism: str) -> Login:
    options = {} if module is None else module.options
    user = settings.sasl_username or options.get("username", "")
    password = settings.sasl_password or options.get("password", "")
    if not user or not password:
        raise ConfigError(f"{mechanism} needs sasl.username and sasl.password, or both in sasl.jaas.config")
    return Login(user, password)


def _refuse_unusable(make: Callable[[], object]) -> None:
    try:
        make()
    except ValueError as error:
        raise ConfigError(f"sasl.username and sasl.password cannot be used: {error}") from None


def _oauthbearer(tokens: Tokens) -> Callable[[], ClientExchange]:
    def exchange() -> ClientExchange:
        token = tokens.token()
        try:
            return OauthbearerClient(token.text, token.extensions)
        except ValueError as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"the token cannot be sent: {error}") from None

    return exchange
