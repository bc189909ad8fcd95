"""`RunningRegistry`: a schema registry in the process of a test, beside a broker under test."""

from typing import TYPE_CHECKING, Self

from moldau.errors import ConfigError, MoldauError
from moldau.names import how_to_install
from moldau.testing.contexts import StartedInWith

if TYPE_CHECKING:
    from moldau.http.in_thread import ServerThread
    from moldau.testing.broker import Broker


class RunningRegistry(StartedInWith):
    """A schema registry on 127.0.0.1, on a free port, in a thread of its own. Use it in `with` or `async with`, or call
    `start` and `stop`. It stores its schemas in a topic of the broker, so they survive a restart of the registry. Needs
    the extra `registry`."""

    def __init__(self, broker: "Broker", topic: str = "_schemas"):
        self._broker = broker
        self._topic = topic
        self._running: ServerThread | None = None

    def __repr__(self) -> str:
        return f"<moldau.testing.RunningRegistry {self._running.addresses[0] if self._running else 'not running'}>"

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, for `schema.registry.url`."""
        if self._running is None:
            raise MoldauError("this registry does not run: use it in `with`, or call start()")
        return self._running.addresses[0]

    def start(self) -> Self:
        """Returns itself when the registry serves. Raises `ConfigError`, `KafkaError`, `OSError`."""
        if self._running is not None:
            raise MoldauError("this registry runs already")
        try:
            from moldau.http.in_thread import ServerThread
            from moldau.registry.server import RegistryServer, RegistrySettings
            from moldau.registry.topic import SchemasTopicSettings
        except ImportError as missing:
            raise ConfigError(f"the registry needs {missing.name}: {how_to_install('registry')}") from None
        from moldau.client.security.brokers import Brokers

        brokers = Brokers(self._broker.address, self._broker.client_settings())
        settings = RegistrySettings("127.0.0.1", 0, SchemasTopicSettings(self._topic))
        running = ServerThread(RegistryServer(brokers, settings), "schema registry")
        running.start()
        self._running = running
        return self

    def stop(self) -> None:
        """End the registry. Nothing happens if it has ended."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()
