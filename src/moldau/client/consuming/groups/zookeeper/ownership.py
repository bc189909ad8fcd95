"""The partitions that a member owns in ZooKeeper: their owner nodes, and the offsets that it may write.

- An owner node is ephemeral. Where one exists, another stream owns the partition, unless its text is ours and it is of
  our session: then the answer to its creation was lost.
- An offset is written in one transaction with a check of the owner node's version, and only over the version of the
  offset that is known. A new owner writes both nodes once more, unchanged, in the transaction that makes it the owner:
  the versions are others from then on. So nobody can write an offset once its session is over, or once its owner node
  was deleted and is another's.
- After a lost answer nobody knows what was written. It is read again, and only what is missing is written.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from moldau.client.consuming.groups.zookeeper.group_reading import CommittedNode, read_offsets
from moldau.client.consuming.groups.zookeeper.registered_members import GroupNodes
from moldau.client.consuming.groups.zookeeper.sharing import OwnedPartition
from moldau.errors import ErrorCode, KafkaError
from moldau.metadata_store.store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Node,
    NodeExists,
    NodeOperation,
    NoNode,
    OutcomeUnknown,
    Set,
    StoreConflict,
    node_at,
    nodes_at,
)
from moldau.names import TopicPartition, by_topic

TOGETHER = 100
"""The most partitions in one transaction, which ZooKeeper bounds in bytes."""
OWNER_VERSION = 1
"""That of an owner node of ours; clients of Kafka 0.8 leave theirs at 0."""
TRIES = 20
"""A transaction is made again this often, if others write the same nodes."""

logger = logging.getLogger(__name__)


@dataclass
class ClaimedPartition:
    """A partition that is owned, and the state of its offset's node as this member knows it."""

    owned: OwnedPartition
    node: CommittedNode


class Ownership:
    """What one member owns. Every call names the session in which it is to happen."""

    def __init__(self, nodes: GroupNodes):
        self._nodes = nodes
        self.claims: dict[TopicPartition, ClaimedPartition] = {}

    @property
    def owned(self) -> dict[TopicPartition, OwnedPartition]:
        return {tp: claim.owned for tp, claim in self.claims.items()}

    def forget(self) -> None:
        """The session is over, and with it all ownership."""
        self.claims = {}

    async def claim(
        self, session: MetadataStore, wanted: Mapping[TopicPartition, OwnedPartition]
    ) -> TopicPartition | None:
        """Own these partitions; nothing is owned before. Returns None, or a partition that another stream owns: then
        nothing is owned. Raises `StorageError`, `KafkaError`."""
        for topic in by_topic(wanted):
            await make_lasting(session, f"{self._nodes.owners(topic)}/-", f"{self._nodes.offsets(topic)}/-")
        for some in _portions(list(wanted)):
            contested = await self._claim(session, {tp: wanted[tp] for tp in some})
            if contested is not None:
                await self.release(session)
                return contested
        return None

    async def _claim(
        self, session: MetadataStore, wanted: dict[TopicPartition, OwnedPartition]
    ) -> TopicPartition | None:
        paths = {tp: self._nodes.owner(tp.topic, one.name) for tp, one in wanted.items()}
        for _ in range(TRIES):
            offsets = await session.read(read_offsets(self._nodes, wanted))
            operations: list[NodeOperation] = []
            for tp, owner in zip(paths, await session.read(nodes_at(list(paths.values()))), strict=True):
                if owner is None:
                    stream = wanted[tp].stream.encode()
                    operations += [Create(paths[tp], stream, ephemeral=True), Set(paths[tp], stream, 0)]
                elif not _is_ours(owner, session, wanted[tp]):
                    return tp
                operations += _moved_here(offsets[tp])
            try:
                await session.multi(operations)
            except NodeExists as refusal:
                found = [tp for tp, path in paths.items() if path == refusal.path]
                if found and not _is_ours(await session.read(node_at(refusal.path)), session, wanted[found[0]]):
                    return found[0]
                continue
            except (StoreConflict, OutcomeUnknown):
                continue
            self.claims |= {tp: ClaimedPartition(one, offsets[tp]) for tp, one in wanted.items()}
            for tp, node in (await session.read(read_offsets(self._nodes, wanted))).items():
                self.claims[tp].node = node
            return None
        return next(iter(wanted))

    async def release(self, session: MetadataStore) -> None:
        """Delete the owner nodes of this session. Raises `StorageError`."""
        for some in _portions(list(self.claims)):
            paths = [self._nodes.owner(tp.topic, self.claims[tp].owned.name) for tp in some]
            while True:
                owners = await session.read(nodes_at(paths))
                ours = [
                    Delete(path)
                    for path, node in zip(paths, owners, strict=True)
                    if node is not None and node.owner == session.session_id
                ]
                try:
                    await session.multi(ours)
                    break
                except (StoreConflict, OutcomeUnknown):
                    continue
        self.claims = {}

    # -- offsets

    async def commit(self, session: MetadataStore, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the offsets of partitions that are owned. Raises `StorageError`, and `CommitFailed` for a partition
        that is not owned (any more); the others are written."""
        lost = [tp for tp in offsets if tp not in self.claims]
        for some in _portions([tp for tp in offsets if tp in self.claims]):
            lost += await self._commit(session, {tp: offsets[tp] for tp in some})
        if lost:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"committing {min(lost)} for group {self._nodes.group}: this consumer does not own it (any more)",
            )

    async def _commit(self, session: MetadataStore, offsets: dict[TopicPartition, int]) -> list[TopicPartition]:
        """Returns the partitions that another owner has."""
        lost: list[TopicPartition] = []
        for _ in range(TRIES):
            claims = {tp: self.claims[tp] for tp in offsets if tp in self.claims}
            written = [tp for tp in claims if claims[tp].node.offset != offsets[tp]]
            operations: list[NodeOperation] = []
            for tp in written:
                owner = self._nodes.owner(tp.topic, claims[tp].owned.name)
                operations += [Check(owner, OWNER_VERSION), _written(claims[tp].node, offsets[tp])]
            if not operations:
                return lost
            try:
                results = await session.multi(operations)
            except (StoreConflict, OutcomeUnknown):
                lost += await self._look_again(session, offsets)
                continue
            for tp, result in zip(written, results[1::2], strict=True):
                node = claims[tp].node
                version = 0 if result is None else result.version
                claims[tp].node = node._replace(offset=offsets[tp], version=version)
            return lost
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"others write the offsets of group {self._nodes.group}")

    async def _look_again(self, session: MetadataStore, offsets: dict[TopicPartition, int]) -> list[TopicPartition]:
        """Take over what is in the nodes now. An offset that somebody else has written and that is ahead of ours
        stays: ours is taken out of `offsets`. Returns the partitions that another owner has."""
        claims = {tp: self.claims[tp] for tp in offsets if tp in self.claims}
        paths = [self._nodes.owner(tp.topic, claim.owned.name) for tp, claim in claims.items()]
        nodes = await session.read(read_offsets(self._nodes, {tp: claim.owned for tp, claim in claims.items()}))
        lost = []
        for tp, owner in zip(claims, await session.read(nodes_at(paths)), strict=True):
            before, now = claims[tp].node, nodes[tp]
            if not _is_ours(owner, session, claims[tp].owned):
                lost.append(tp)
                del self.claims[tp]
                continue
            claims[tp].node = now
            if now.version != before.version and (now.offset or 0) > offsets[tp]:
                logger.warning("group %s: the offset of %s was moved to %s", self._nodes.group, tp, now.offset)
                del offsets[tp]
        return lost


async def make_lasting(session: MetadataStore, *paths: str) -> None:
    """Create the nodes above these, where they do not exist. Raises `StorageError`."""
    above: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")[1:-1]
        above.update(dict.fromkeys("/" + "/".join(parts[: end + 1]) for end in range(len(parts))))
    names = list(above)
    for path, node in zip(names, await session.read(nodes_at(names)), strict=True):
        while node is None:
            try:
                await session.multi([Create(path)])
            except NodeExists:
                pass
            except (NoNode, OutcomeUnknown):
                node = await session.read(node_at(path))
                continue
            break


def _is_ours(owner: Node | None, session: MetadataStore, wanted: OwnedPartition) -> bool:
    return (
        owner is not None
        and (owner.owner, owner.version) == (session.session_id, OWNER_VERSION)
        and owner.data == wanted.stream.encode()
    )


def _moved_here(node: CommittedNode) -> list[NodeOperation]:
    """Write the offset again, so that a former owner does not know its version, and under one name."""
    return [] if node.offset is None else [_written(node, node.offset), *(Delete(path) for path in node.others)]


def _written(node: CommittedNode, offset: int) -> NodeOperation:
    data = str(offset).encode()
    return Create(node.path, data) if node.version is None else Set(node.path, data, node.version)


def _portions(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    for start in range(0, len(partitions), TOGETHER):
        yield partitions[start : start + TOGETHER]
