"""A consumer as text: its name and brokers, its group, and what it reads."""

from collections.abc import Callable

from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.rebalancing import Rebalancing
from moldau.client.shown import shown, some
from moldau.names import TopicPartition


class ConsumerText:
    """The part of `AsyncConsumer` that shows it."""

    settings: ConsumerSettings
    assignment: Callable[[], list[TopicPartition]]
    _started: bool
    _closed: bool
    _rebalancing: Rebalancing

    def __repr__(self) -> str:
        return self.shown("aio.Consumer")

    def shown(self, kind: str) -> str:
        """The client as text."""
        group = f"group {self.settings.group_id!r}" if self.settings.group_id else ""
        if self._closed or not self._started:
            return shown(kind, self.settings, group, "closed" if self._closed else "not started")
        subscription, assigned = self._rebalancing.subscription, self.assignment()
        reads = f"reading {some(assigned)}" if assigned else "reading nothing"
        return shown(kind, self.settings, group, f"subscribed to {subscription}" if subscription else "", reads)
