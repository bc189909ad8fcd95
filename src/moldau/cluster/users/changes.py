"""Changes to the SCRAM credentials of users.

Every change reads the nodes that it changes, and is decided again if another session has changed them since: Kafka's
tools write there, too, and quotas are in the same nodes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.users.credentials import changed, read_iterations, user_path
from moldau.errors import ErrorCode
from moldau.metadata_store.store import MetadataStore, Node, NodeOperation, StoreConflict, nodes_at
from moldau.transport.sasl.scram import Credential

MISSING = Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


class CredentialChange(NamedTuple):
    """`credential` is None to remove the one that the user has for that mechanism."""

    user: str
    mechanism: str
    credential: Credential | None


class UserChanges:
    """`queue` is the controller's."""

    def __init__(self, queue: ChangeQueue):
        self.queue = queue

    async def known(self, users: list[str]) -> Mapping[str, Mapping[str, int]]:
        """See `read_iterations`; of no user if none is named. Raises `KafkaError(NOT_CONTROLLER)`, `StorageError`."""
        return await self.queue.read(read_iterations(users)) if users else {}

    @in_turn
    async def alter(self, changes: Sequence[CredentialChange]) -> list[Refusal | None]:
        """`changes` names each user once. Raises what `ChangeQueue.commit` raises; then none was altered."""
        paths = [user_path(one.user) for one in changes]
        known = await self.queue.read(read_iterations([one.user for one in changes]))
        nodes: list[Node | None] = await self.queue.read(nodes_at(paths))
        refusals = [
            MISSING if one.credential is None and one.mechanism not in known.get(one.user, ()) else None
            for one in changes
        ]

        def operations() -> list[NodeOperation]:
            return [
                changed(one.user, node, {one.mechanism: one.credential})
                for one, node, refusal in zip(changes, nodes, refusals, strict=True)
                if refusal is None
            ]

        await self.queue.commit(await self.queue.decided(len(changes), operations))
        return refusals


async def keep(store: MetadataStore, changes: Sequence[CredentialChange]) -> None:
    """Give users credentials in any session, before the first broker of a cluster has started. Raises
    `StorageError`."""
    for one in changes:
        while True:
            node = (await store.read(nodes_at([user_path(one.user)])))[0]
            try:
                await store.multi([changed(one.user, node, {one.mechanism: one.credential})])
                break
            except StoreConflict:
                continue
