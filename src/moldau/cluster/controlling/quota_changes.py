"""Changes to the quotas of users, client ids and addresses.

A user's node has SCRAM credentials as well, and other tools write there: every change reads the nodes that it changes,
and is decided again if another session has changed them since. All changes of a request are one step.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.state import layout, quotas
from moldau.cluster.state.quotas import QuotaOwner
from moldau.metadata_store.store import Node, NodeOperation, Set, nodes_at


class QuotaChange(NamedTuple):
    """The new value of each quota, None to remove it."""

    entity: QuotaOwner
    values: Mapping[str, float | None]


class QuotaChanges:
    """`queue` is the controller's."""

    def __init__(self, queue: ChangeQueue):
        self.queue = queue

    @in_turn
    async def alter(self, changes: Sequence[QuotaChange]) -> None:
        """`changes` names each entity once. Raises what `ChangeQueue.commit` raises; then none was altered."""
        paths = list(
            dict.fromkeys(
                path for one in changes for path in (*quotas.parents_of(one.entity), quotas.path_of(one.entity))
            )
        )
        nodes = dict(zip(paths, await self.queue.read(nodes_at(paths)), strict=True))
        await self.queue.commit(await self.queue.decided(len(paths), lambda: operations(changes, nodes)))


def operations(changes: Sequence[QuotaChange], nodes: Mapping[str, Node | None]) -> list[NodeOperation]:
    """What makes these changes to those nodes, None where there is none."""
    texts = dict[str, dict[str, str]]()
    parents = dict[str, None]()
    for entity, values in changes:
        path = quotas.path_of(entity)
        before = quotas.settings_in(nodes[path], path)
        after = {**before, **{key: quotas.text_of(key, value) for key, value in values.items() if value is not None}}
        for key, value in values.items():
            if value is None:
                after.pop(key, None)
        if after != before:
            texts[path] = after
            parents |= dict.fromkeys(quotas.parents_of(entity))
    new = [quotas.bare(path) for path in parents if nodes[path] is None and path not in texts]
    made: list[NodeOperation] = [*new, *(_written(path, own, nodes[path]) for path, own in texts.items())]
    return sorted(made, key=lambda one: one.path)  # parents first


def _written(path: str, settings: Mapping[str, str], node: Node | None) -> NodeOperation:
    operation = layout.config(path, settings, is_new=node is None)
    return operation._replace(version=node.version) if node is not None and isinstance(operation, Set) else operation
