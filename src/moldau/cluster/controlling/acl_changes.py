"""Changes to access control lists: those of clients, and those that Kafka's tools have written into the store.

Every decision is made on the nodes as they are: a tool may have changed one since this broker has read it. A node that
changes before it is written is a conflict, and the change is decided again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state import acls, layout
from moldau.cluster.state.acls import AclEntry, AclPattern, Entries
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode
from moldau.metadata_store.store import Create, Delete, Node, NodeOperation, Set, nodes_at

OneAcl: TypeAlias = tuple[AclPattern, AclEntry]
Selects: TypeAlias = Callable[[AclPattern, AclEntry], bool]
NODE_BYTES_MAX = 900_000
"""ZooKeeper takes less than 1 MiB."""
FULL = Refusal(ErrorCode.POLICY_VIOLATION, "the resource has too many ACLs: give a principal fewer, or use prefixes")


class AclChanges:
    def __init__(self, metadata: MetadataCache, queue: ChangeQueue):
        self.queue = queue
        self._metadata = metadata

    @in_turn
    async def create(self, wanted: Sequence[OneAcl]) -> dict[AclPattern, Refusal]:
        """Add the entries; an entry that exists already stays. Returns the patterns that have not got theirs. Raises
        what `ChangeQueue.commit` raises; then none was added."""
        added: dict[AclPattern, set[AclEntry]] = {}
        for pattern, entry in wanted:
            added.setdefault(pattern, set()).add(entry)
        nodes = await self._nodes(added)
        parents = list(dict.fromkeys(path for pattern in added for path in acls.parents_of(pattern)))
        missing = [
            Create(path)
            for path, node in zip(parents, await self.queue.read(nodes_at(parents)), strict=True)
            if node is None
        ]
        full: dict[AclPattern, Refusal] = {}

        def decide() -> list[NodeOperation]:
            steps: list[NodeOperation] = []
            for pattern, entries in added.items():
                step = _changed(pattern, nodes[pattern], added=entries)
                if any(isinstance(one, Create | Set) and len(one.data) > NODE_BYTES_MAX for one in step):
                    full[pattern] = FULL
                else:
                    steps += step
            return steps

        await self.queue.commit([*missing, *(await self.queue.decided(len(wanted), decide))])
        return full

    @in_turn
    async def delete(self, filters: Sequence[Selects]) -> list[list[OneAcl]]:
        """Delete what the filters select; returns what that was, for each of them. Raises what `ChangeQueue.commit`
        raises; then nothing was deleted."""
        known = self._metadata.image.acls
        count = len(filters) * sum(1 + len(entries) for entries in known.values())
        touched = await self.queue.decided(
            count,
            lambda: sorted(
                pattern
                for pattern, entries in known.items()
                if any(selects(pattern, entry) for entry in entries for selects in filters)
            ),
        )
        nodes = await self._nodes(touched)

        def decide() -> tuple[list[list[OneAcl]], list[NodeOperation]]:
            existing = [(pattern, entry) for pattern in touched for entry in _entries(pattern, nodes[pattern])]
            deleted = [[acl for acl in existing if selects(*acl)] for selects in filters]
            gone: dict[AclPattern, set[AclEntry]] = {}
            for pattern, entry in (acl for some in deleted for acl in some):
                gone.setdefault(pattern, set()).add(entry)
            steps = [
                step for pattern, entries in gone.items() for step in _changed(pattern, nodes[pattern], gone=entries)
            ]
            return deleted, steps

        deleted, steps = await self.queue.decided(count, decide)
        await self.queue.commit(steps)
        return deleted

    async def _nodes(self, patterns: Iterable[AclPattern]) -> Mapping[AclPattern, Node | None]:
        named = list(patterns)
        nodes = await self.queue.read(nodes_at([acls.path_of(pattern) for pattern in named]))
        return dict(zip(named, nodes, strict=True))


def _entries(pattern: AclPattern, node: Node | None) -> Entries:
    return () if node is None else acls.entries_of(node, acls.path_of(pattern))


def _changed(
    pattern: AclPattern,
    node: Node | None,
    added: Collection[AclEntry] = (),
    gone: Collection[AclEntry] = (),
) -> list[NodeOperation]:
    before = {*_entries(pattern, node)}
    after = (before | {*added}) - {*gone}
    if after == before:
        return []
    return layout.acls_changed(pattern, sorted(after), None if node is None else node.version)


async def take_over_acls(metadata: MetadataCache, queue: ChangeQueue) -> None:
    """Show the ACLs that tools have changed, and remove the nodes by which they say so. Only for a change whose turn it
    is."""
    told = await queue.read(acls.read_changes())
    if not told:
        return
    now, image = await queue.read(acls.read_acls()), metadata.image
    if now != image.acls:
        await metadata.show(replace(image, acls=now), [])
    await queue.commit([Delete(path) for path in told])
