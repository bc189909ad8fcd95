"""Where the cluster's controller is: the store says it, and a watch says when to look again."""

import asyncio
import contextlib
import logging

from moldau.cluster.state import layout
from moldau.cluster.state.image import BrokerImage
from moldau.cluster.state.reading import read_controller_broker
from moldau.errors import StorageError
from moldau.metadata_store.store import MetadataStore, SessionOver
from moldau.notices import Notices

LOOK_S = 0.2
"""The pause between two reads of the store while no controller is known, or the store did not answer. The watch is not
enough: it does not fire for changes of this broker's own session."""

notices = Notices(logging.getLogger(__name__))


class ControllerLocator:
    """`controller` is the registration of the latest known controller, None if there is none now. While the store
    cannot be reached, it stays as it was. `is_told`: the store says where it is, in a session that is not over."""

    def __init__(self) -> None:
        self.controller: BrokerImage | None = None
        self.is_told = False
        self._moved = asyncio.Event()

    async def serve(self, store: MetadataStore) -> None:
        """Follow the controller from broker to broker until this session is over."""
        try:
            await self._follow(store)
        except SessionOver:
            pass
        finally:
            self.is_told = False

    def found(self, controller: BrokerImage) -> None:
        """Other brokers say that this is the controller: that counts while the store says nothing."""
        if not self.is_told:
            self._show(controller)

    async def _follow(self, store: MetadataStore) -> None:
        look = asyncio.Event()
        while not await self._watched(store, look):
            await asyncio.sleep(LOOK_S)
        while True:
            look.clear()
            is_known = False
            try:
                self._show(await store.read(read_controller_broker()))
                is_known, self.is_told = self.controller is not None, True
            except SessionOver:
                raise
            except StorageError as error:
                notices.error("", "the controller cannot be found: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if is_known else LOOK_S):
                    await look.wait()

    async def moved_from(self, controller: BrokerImage | None) -> BrokerImage | None:
        """Wait until the controller is another one than this, or None; returns it."""
        while self.controller == controller:
            await self._moved.wait()
        return self.controller

    async def _watched(self, store: MetadataStore, look: asyncio.Event) -> bool:
        try:
            await store.watch(layout.CONTROLLER, look.set)
        except SessionOver:
            raise
        except StorageError as error:
            notices.error("", "the controller cannot be found: %s", error)
            return False
        return True

    def _show(self, controller: BrokerImage | None) -> None:
        if controller != self.controller:
            self.controller = controller
            self._moved.set()
            self._moved = asyncio.Event()
