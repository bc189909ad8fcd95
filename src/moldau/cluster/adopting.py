"""The metadata of a broker that was alone, written into a store in which they begin a cluster of several.

The first step makes `/moldau/adoption`; then everything else is written in steps that the store takes (see `steps`),
and the last step makes `/cluster/id` in its place. Before it the store has no cluster, so no broker joins half of one.
An adoption that was cut off is made again from the beginning; what is written already stays, or is brought up to date.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage
from moldau.cluster.state.reading import adopted_cluster, cluster_id_of
from moldau.errors import StorageError
from moldau.metadata_store.steps import in_steps
from moldau.metadata_store.store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    NodeExists,
    Set,
    children_of,
    node_at,
    nodes_at,
)

EMPTY = "name an empty place, such as HOST:PORT/another"


async def write_cluster(
    store: MetadataStore, image: Image, broker_id: int, producer_id: int, before_last: Callable[[], None]
) -> None:
    """Write the image of a broker that was alone; `producer_id` is the last that may have been assigned. `before_last`
    is called when only the last step is missing. Raises `StorageError` if the store has something else, or fails: then
    it can be called again."""
    version = await _begun(store, image.cluster_id)
    wanted = adoption(image, broker_id, producer_id)
    await _refuse_others(store, wanted)
    nodes = await store.read(nodes_at([step.path for step in wanted]))
    rest: list[Create | Set] = [
        step if node is None else Set(step.path, step.data, node.version)
        for step, node in zip(wanted, nodes, strict=True)
        if node is None or node.data != step.data
    ]
    for together in in_steps(rest):
        await store.multi([Check(layout.ADOPTION, version), *together])
    before_last()
    await store.multi([layout.cluster(image.cluster_id), Delete(layout.ADOPTION, version)])


async def has_cluster(store: MetadataStore, cluster_id: str) -> bool:
    """Whether the store has this cluster. Raises `StorageError`."""
    node = await store.read(node_at(layout.CLUSTER_ID))
    return node is not None and cluster_id_of(node) == cluster_id


def adoption(image: Image, broker_id: int, producer_id: int) -> list[Create]:
    """Everything of a cluster but its id. Of several brokers, the log folder is known of the replicas that were
    made."""
    topics = {
        name: topic._replace(partitions=tuple(_as_of_several(part) for part in topic.partitions))
        for name, topic in image.topics.items()
    }
    lasting = replace(image, topics=topics, topics_by_id={})
    steps = [*layout.whole(lasting, [broker_id]), *layout.last_producer_ids(broker_id, producer_id)]
    beginning = {layout.CLUSTER_ID, *(step.path for step in layout.adoption_begun(image.cluster_id))}
    return [step for step in steps if isinstance(step, Create) and step.path not in beginning]


def _as_of_several(part: PartitionImage) -> PartitionImage:
    return part if part.made else part._replace(directories=(), made=True)


async def _begun(store: MetadataStore, cluster_id: str) -> int:
    """The version of `/moldau/adoption`, which this adoption has made or set."""
    while True:
        there, begun = await store.read(nodes_at([layout.CLUSTER_ID, layout.ADOPTION]))
        if there is not None:
            raise StorageError(f"cluster {cluster_id_of(there)} exists there already: {EMPTY}")
        if begun is not None:
            other = adopted_cluster(begun)
            if other != cluster_id:
                raise StorageError(f"the adoption of another cluster ({other}) has begun there: {EMPTY}")
            await store.multi([Set(layout.ADOPTION, begun.data, begun.version)])
            return begun.version + 1
        roots = await store.read(nodes_at(layout.ROOTS))
        taken = next((path for path, node in zip(layout.ROOTS, roots, strict=True) if node is not None), None)
        if taken is not None:
            raise StorageError(f"{taken} exists there already: {EMPTY}")
        try:
            await store.multi(layout.adoption_begun(cluster_id))
        except NodeExists:  # somebody else was faster
            continue
        return 0


async def _refuse_others(store: MetadataStore, wanted: Sequence[Create]) -> None:
    """Raise `StorageError` if an earlier attempt has written what this broker has no more."""
    ours = {step.path for step in wanted}
    for parent in layout.NAMED_BELOW:
        for name in await store.read(children_of(parent)):
            if f"{parent}/{name}" not in ours:
                raise StorageError(
                    f"{parent}/{name} is there, which an earlier attempt has written and this broker has no more: "
                    f"{EMPTY}"
                )
