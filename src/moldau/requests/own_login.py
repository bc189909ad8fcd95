"""How this broker logs in at the others, whose listener has SASL: by a user and password, or by a token.

PLAIN, SCRAM   `username` and `password` of the login module in `sasl.jaas.config`
OAUTHBEARER    a token of an authorization server, which is asked again before the token ends, or one in a file. While
               the server is down, new connections use the token that the broker has, and open ones stay until its end.

The login module is that of Kafka: in `listener.name.LISTENER.MECHANISM.sasl.jaas.config`, `listener.name.LISTENER.` or
without either. What raises `ConfigError` raises it without passwords.
"""

from secrets import token_hex

from moldau.config import BrokerConfig
from moldau.config.sasl import MECHANISMS, OAUTHBEARER
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.peers.sessions import ClientLogin
from moldau.requests.logins import PLAIN_MODULE
from moldau.transport.jaas import Login, module_of
from moldau.transport.sasl import plain
from moldau.transport.sasl.exchange import ClientExchange
from moldau.transport.sasl.oauthbearer import OauthbearerClient
from moldau.transport.sasl.plain import PlainClient
from moldau.transport.sasl.scram import ScramClient
from moldau.transport.token_sources import (
    TOKEN_URL,
    ClientCredentials,
    Tokens,
    extensions_in,
    module_options,
    source_at,
)

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def login_at_brokers(config: BrokerConfig) -> ClientLogin:
    """Raises `ConfigError`."""
    listener, mechanism = config.inter_broker_listener, config.sasl_mechanism_inter_broker_protocol
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol is {mechanism[:60]}; brokers log in at each other by one of "
            f"{', '.join(MECHANISMS)}"
        )
    own = config.of_mechanism(listener, mechanism)
    if mechanism not in own.sasl_enabled_mechanisms:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol is {mechanism}, and the listener {listener} does not take it: add "
            f"it to sasl.enabled.mechanisms, or to listener.name.{listener.lower()}.sasl.enabled.mechanisms"
        )
    setting = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    if mechanism == OAUTHBEARER:
        return ClientLogin(mechanism, _ByToken(_tokens(own, setting)))
    login = _user(own, setting, PLAIN_MODULE if mechanism == plain.MECHANISM else SCRAM_MODULE)
    if mechanism == plain.MECHANISM:
        return ClientLogin(mechanism, lambda: PlainClient(login))
    return ClientLogin(mechanism, lambda: ScramClient(mechanism, login, token_hex(20)))


def _user(own: BrokerConfig, setting: str, needed: str) -> Login:
    module = module_of(own.sasl_jaas_config or "", setting)
    user, password = module.options.get("username", ""), module.options.get("password", "")
    if module.name != needed or not user or not password:
        raise ConfigError(
            f'{setting} must be {needed} required username="NAME" password="PASSWORD"; with the user that this broker '
            "logs in as at the others"
        )
    return Login(user, password)


def _tokens(own: BrokerConfig, setting: str) -> Tokens:
    """The source of this broker's tokens; Kafka needs a login module beside the other settings, and here it may be
    missing."""
    options = module_options(own.sasl_jaas_config, setting)
    url = own.sasl_oauthbearer_token_endpoint_url
    if not url:
        raise ConfigError(
            f"this broker has no token to log in with at the others: set {TOKEN_URL} to the https:// URL of an "
            "authorization server, or to the file:// URL of a file with a token"
        )
    asking = ClientCredentials(
        own.sasl_oauthbearer_client_credentials_client_id,
        own.sasl_oauthbearer_client_credentials_client_secret,
        own.sasl_oauthbearer_scope,
    )
    return source_at(url, asking, extensions_in(options), options)


class _ByToken:
    """Begins a login with the token that counts then. Blocks, since an authorization server may be asked."""

    def __init__(self, tokens: Tokens):
        self._tokens = tokens

    def __call__(self) -> ClientExchange:
        """Raises `KafkaError`."""
        token = self._tokens.token()
        try:
            return OauthbearerClient(token.text, token.extensions)
        except ValueError as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"the token cannot be sent: {error}") from None
