"""The settings of clients that find their brokers in ZooKeeper: names and defaults of Kafka 0.8, names of 0.7 too."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.client.settings import ClientSettings, setting, settings


@settings
class ZooKeeperSettings(ClientSettings):
    """What producers and consumers can be told of ZooKeeper."""

    zookeeper_connect: str | None = setting(
        default=None,
        aliases=("zk_connect",),
        about="HOST:PORT,HOST:PORT/CHROOT of the ZooKeeper that the brokers are registered in, instead of"
        " bootstrap_servers; or file:PATH, as the brokers have it. A consumer's group is kept there, too.",
    )
    zookeeper_session_timeout_ms: int = setting(
        default=6_000,
        low=1,
        aliases=("zk_sessiontimeout_ms",),
        about="Without a sign of life for this long a client has no session in ZooKeeper any more.",
    )
    zookeeper_connection_timeout_ms: int = setting(
        default=6_000, low=1, aliases=("zk_connectiontimeout_ms",), about="Wait this long for a session in ZooKeeper."
    )
    zookeeper_session: Callable[[], Awaitable[Any]] | None = setting(
        default=None, internal=True, about="Opens a session in the store; simulations hand in their own."
    )

    def reaching_brokers(self) -> dict[str, Any]:
        """The settings that say how a client reaches the brokers, for another client of the same program."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(ZooKeeperSettings)}

    @property
    def brokers_text(self) -> str:
        connect = self.zookeeper_connect
        return super().brokers_text if connect is None else f"ZooKeeper {connect}"

    def check(self) -> None:
        super().check()
        if self.zookeeper_connect is not None and self.zookeeper_session is None:
            from moldau.metadata_store.opening import check_connect

            check_connect(self.zookeeper_connect)
