"""The web console in the process of a broker: `moldau server start --console-port`."""

from moldau.cli.beside.console_extra import needed
from moldau.cli.beside.own_listener import address_of
from moldau.config.broker import BrokerConfig
from moldau.config.listeners import ClientListener
from moldau.errors import ConfigError
from moldau.process import Beside, RunsBeside

EVERY_INTERFACE = ("", "0.0.0.0", "::")
OF_PASSWORDS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


def console_beside(port: int, registry_port: int = 0) -> Beside:
    """Returns a function that starts the console when the broker listens. `registry_port` is the port of the schema
    registry in the same process, or 0 if there is none or if its port is not known yet. Raises `ConfigError`."""
    needed()
    from moldau.client.registry.schema_registry import SchemaRegistry
    from moldau.console.server import ConsoleServer
    from moldau.console.settings import ConsoleSettings
    from moldau.http.in_thread import ServerThread

    def beside(config: BrokerConfig, ports: "dict[str, int]") -> RunsBeside:
        listener, mechanism = _reached(config)
        client = {"bootstrap.servers": address_of(listener, ports), "security.protocol": listener.protocol}
        if mechanism:
            client["sasl.mechanism"] = mechanism
        host = listener.host or "localhost"
        open_to_all = next((one.host for one in config.client_listeners if one.protocol == "PLAINTEXT"), "")
        registry = SchemaRegistry(_url(open_to_all, registry_port)) if registry_port else None
        settings = ConsoleSettings(client, host, port, registry=registry, metrics=_own_metrics(config))
        return ServerThread(ConsoleServer(settings), "console")

    return beside


def _own_metrics(config: BrokerConfig) -> tuple[str, ...]:
    """The address of the broker's metrics, if they have a port that is known before they listen."""
    return (f"{_url(config.metrics_host, config.metrics_port)}/metrics",) if config.metrics_port > 0 else ()


def _url(host: str, port: int) -> str:
    """The address of another server in this process, from this machine."""
    reached = "localhost" if host in EVERY_INTERFACE else host
    return f"http://{f'[{reached}]' if ':' in reached else reached}:{port}"


def _reached(config: BrokerConfig) -> tuple[ClientListener, str]:
    """The listener that the console uses, and the mechanism of its users' logins, "" without logins. If any listener
    asks for logins or TLS, one without them may be meant for few: then the console has logins. Raises `ConfigError`."""
    listeners = config.client_listeners
    if all(one.protocol == "PLAINTEXT" for one in listeners):
        return listeners[0], ""
    for one in listeners:
        enabled = config.of_listener(one.name).sasl_enabled_mechanisms
        mechanism = next((name for name in OF_PASSWORDS if name in enabled), "")
        if one.protocol == "SASL_PLAINTEXT" and mechanism:
            return one, mechanism
    raise ConfigError(
        "--console-port needs a listener without TLS, and with passwords if any listener has logins; run `moldau "
        "console` with --command-config instead"
    )
