"""This broker's registration: the node `/brokers/ids/N`, which exists as long as its session.

A broker id belongs to one running broker. If the node of another one is there, it is left alone, and the registration
fails.
"""

from collections.abc import Sequence

from moldau.cluster.beginning import id_in_use
from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.state import elections, layout
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.metadata_store.store import NodeExists, NodeOperation
from moldau.runtime import Runtime


class Registration:
    def __init__(self, metadata: MetadataCache, queue: ChangeQueue, runtime: Runtime):
        self.queue = queue
        self._metadata = metadata
        self._runtime = runtime
        self._endpoints: tuple[Endpoint, ...] = ()
        self._version: int | None = None
        """The version of this broker's node; None before the node exists."""

    @in_turn
    async def register(self, endpoints: Sequence[Endpoint], directories: Sequence[str] = ()) -> None:
        """Register this broker as up: its listeners (at least one), and the ids of the log folders it serves. Raises
        `BrokerConflict` if another broker with its id is up."""
        self._endpoints = tuple(endpoints)
        await self._register(directories)

    @in_turn
    async def serve_only(self, directories: Sequence[str]) -> None:
        """This broker serves only these log folders from now on, and leads no partition that is in another."""
        if self._endpoints:
            await self._register(directories)
        else:
            await self.queue.commit(self._resigned(directories))

    async def _register(self, directories: Sequence[str]) -> None:
        metadata = self._metadata
        broker = BrokerImage(metadata.broker_id, self._endpoints, metadata.config.broker_rack, tuple(directories))
        node = layout.broker(broker, self._runtime.clock.now_ms(), self._version)
        try:
            await self.queue.commit([node, *(self._resigned(directories) if directories else ())])
        except NodeExists as exists:
            if exists.path != node.path:
                raise
            raise await self.queue.read(id_in_use(metadata.broker_id)) from None
        self._version = 0 if self._version is None else self._version + 1

    def _resigned(self, directories: Sequence[str]) -> list[NodeOperation]:
        image = self._metadata.image
        changed = elections.directories_lost(image, self._metadata.broker_id, directories)
        return [
            step
            for topic in changed
            for step in layout.topic_changed(image.topics[topic.name], topic, image.controller_epoch)
        ]
