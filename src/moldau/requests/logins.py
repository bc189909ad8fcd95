"""The logins of one listener: its mechanisms, and what the clients of each are checked against.

PLAIN         passwords in `sasl.jaas.config`, which only this broker has
SCRAM         credentials in the metadata store, read anew for each login: a change counts from the next one on
OAUTHBEARER   tokens, by the keys of their issuer (`token_keys.py`)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from moldau.config import BrokerConfig
from moldau.config.sasl import MECHANISMS, OAUTHBEARER
from moldau.errors import ConfigError
from moldau.names import how_to_install
from moldau.notices import Notices
from moldau.requests.authentication import ServerLogin
from moldau.runtime import Runtime
from moldau.transport.jaas import module_of
from moldau.transport.sasl import oauthbearer, plain, scram
from moldau.transport.sasl.exchange import Authenticated
from moldau.transport.sasl.oauthbearer import OauthbearerServer, TokenRefused
from moldau.transport.sasl.plain import PlainServer
from moldau.transport.sasl.scram import Credential, NamedCredential, ScramServer

if TYPE_CHECKING:
    from moldau.requests.token_keys import TokenKeys

FindCredential = Callable[[str, str], Awaitable[Credential | None]]
"""A user's credential for a mechanism. Raises `StorageError`."""
FindToken = Callable[[str, str], Awaitable[NamedCredential | None]]
"""That of a delegation token, by its id. Raises `StorageError`."""
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER = "user_"
notices = Notices(logging.getLogger(__name__))


class ListenerLogins:
    """See `authentication.Logins`. Raises `ConfigError`."""

    def __init__(self, listener: str, config: BrokerConfig, runtime: Runtime):
        own = config.of_listener(listener)
        self.mechanisms = _supported(own.sasl_enabled_mechanisms, listener)
        self.receive_bytes_max = own.sasl_server_max_receive_size
        self.failure_delay_ms = own.connection_failed_authentication_delay_ms
        self.timeout_ms = own.sasl_server_authentication_timeout_ms
        self.now_ms = runtime.clock.now_ms
        of_mechanism = {name: config.of_mechanism(listener, name) for name in self.mechanisms}
        self._longest_ms = {name: one.connections_max_reauth_ms for name, one in of_mechanism.items()}
        self._passwords: Mapping[str, str] = {}
        if plain.MECHANISM in of_mechanism:
            self._passwords = _passwords(of_mechanism[plain.MECHANISM].sasl_jaas_config, listener)
        self._keys = _token_keys(of_mechanism[OAUTHBEARER], runtime) if OAUTHBEARER in of_mechanism else None
        self._find: FindCredential
        self._find_token: FindToken
        self._secret = b""
        self._random = runtime.random

    def open(self, find: FindCredential, find_token: FindToken, secret: bytes) -> None:
        """Before the first client comes. `secret` makes up salts for users that do not exist."""
        self._find, self._find_token, self._secret = find, find_token, secret

    def begin(self, mechanism: str) -> ServerLogin:
        if mechanism == plain.MECHANISM:
            return PlainServer(self._passwords)
        if mechanism == OAUTHBEARER:
            assert self._keys is not None, "made for this mechanism"
            return TokenLogin(self._keys)
        nonce = self._random.uuid().hex + self._random.uuid().hex
        return ScramLogin(mechanism, self._find, self._find_token, nonce, self._secret)

    def session_ms(self, mechanism: str) -> int:
        return self._longest_ms[mechanism]

    def elapsed_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)


class ScramLogin:
    """Looks up the user that the first message names, and leaves the rest to the exchange."""

    def __init__(self, mechanism: str, find: FindCredential, find_token: FindToken, nonce: str, secret: bytes):
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._nonce = nonce
        self._secret = secret
        self._exchange: ScramServer | None = None

    @property
    def authenticated(self) -> Authenticated | None:
        return None if self._exchange is None else self._exchange.authenticated

    async def answer(self, message: bytes) -> bytes:
        if self._exchange is None:
            user, by_token = scram.name_in(message)
            named = await (self._find_token if by_token else self._named)(user, self._mechanism)
            self._exchange = ScramServer(self._mechanism, lambda *_: named, self._nonce, self._secret)
        return self._exchange.answer(message)

    async def _named(self, user: str, mechanism: str) -> NamedCredential | None:
        known = await self._find(user, mechanism)
        return None if known is None else NamedCredential(known, Authenticated(user))


class TokenLogin:
    """Checks the token of the first message, and leaves the rest to the exchange."""

    def __init__(self, keys: "TokenKeys"):
        self._keys = keys
        self._exchange: OauthbearerServer | None = None

    @property
    def authenticated(self) -> Authenticated | None:
        return None if self._exchange is None else self._exchange.authenticated

    async def answer(self, message: bytes) -> bytes:
        if self._exchange is None:
            token = oauthbearer.token_in(message)
            found: Authenticated | TokenRefused
            try:
                found = await self._keys.check(token)
            except TokenRefused as refused:
                found = refused

            def check(_: str) -> Authenticated:
                if isinstance(found, TokenRefused):
                    raise found
                return found

            self._exchange = OauthbearerServer(check, _tell)
        return self._exchange.answer(message)


def _tell(refused: TokenRefused) -> None:
    notices.info(str(refused), "a client has not authenticated: %s", refused)


def _token_keys(config: BrokerConfig, runtime: Runtime) -> "TokenKeys":
    try:
        from moldau.requests.token_keys import TokenKeys  # few brokers need it, or have what it needs
    except ImportError:
        raise ConfigError(f"OAUTHBEARER needs joserfc: {how_to_install('security')}") from None
    return TokenKeys(config, runtime)


def _supported(names: Iterable[str], listener: str) -> tuple[str, ...]:
    mechanisms = tuple(names)
    for name in mechanisms or ("",):
        if name not in MECHANISMS:
            raise ConfigError(
                f"the listener {listener} has SASL with the mechanism {name or 'of no name'}, which is not supported: "
                f"set sasl.enabled.mechanisms, or listener.name.{listener.lower()}.sasl.enabled.mechanisms, to some of "
                f"{', '.join(MECHANISMS)}"
            )
    return mechanisms


def _passwords(jaas: str | None, listener: str) -> dict[str, str]:
    """The users of PLAIN. Raises `ConfigError`, without passwords."""
    setting = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
    if not jaas:
        raise ConfigError(
            f'PLAIN has no users: set {setting}={PLAIN_MODULE} required user_NAME="PASSWORD"; with an option for each '
            "user"
        )
    module = module_of(jaas, setting)
    if module.name != PLAIN_MODULE:
        raise ConfigError(f"{setting} is for {module.name[:100]}; PLAIN needs {PLAIN_MODULE}")
    users = {name.removeprefix(_USER): text for name, text in module.options.items() if name.startswith(_USER)}
    if not users or not all(users) or not all(users.values()):
        raise ConfigError(f'{setting} needs at least one user_NAME="PASSWORD", and neither may be empty')
    return users
