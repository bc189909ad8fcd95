"""A schema registry in the process of a broker: `moldau server start --registry-port`."""

from moldau.cli.beside.own_listener import address_of
from moldau.config.broker import BrokerConfig
from moldau.errors import ConfigError
from moldau.names import how_to_install
from moldau.process import Beside, RunsBeside


def registry_beside(port: int) -> Beside:
    """Returns a function that starts the registry when the broker listens. Raises `ConfigError`."""
    try:
        from moldau.http.in_thread import ServerThread
        from moldau.registry.server import RegistryServer, RegistrySettings
    except ImportError as missing:
        raise ConfigError(f"the registry needs {missing.name}: {how_to_install('registry')}") from None

    def beside(config: BrokerConfig, ports: "dict[str, int]") -> RunsBeside:
        listener = next((one for one in config.client_listeners if one.protocol == "PLAINTEXT"), None)
        if listener is None:
            raise ConfigError(
                "--registry-port needs a listener without TLS and logins; run `moldau registry start` with "
                "--command-config instead"
            )
        settings = RegistrySettings(listener.host or "localhost", port)
        return ServerThread(RegistryServer(address_of(listener, ports), settings), "schema registry")

    return beside
