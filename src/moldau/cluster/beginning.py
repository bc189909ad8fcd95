"""The first step of a broker in its cluster: begin the cluster if the store has none, become its controller, and lead
the partitions that have no other leader.

It is for a broker alone (one of several: `joined.py`). `/controller` is created, never replaced: the node of another
session that is alive makes this broker give up. The same step raises `/controller_epoch`, which every later change
checks: what a controller that was replaced still writes is refused.
"""

from collections.abc import Mapping
from functools import partial

from moldau.cluster.state import elections, layout
from moldau.cluster.state.image import NO_LEADER, Image
from moldau.cluster.state.image_after import image_after, nodes_after
from moldau.cluster.state.reading import controller_epoch, read_image
from moldau.cluster.state.registrations import registration_of
from moldau.errors import MoldauError
from moldau.metadata_store.store import Check, MetadataStore, NodeOperation, Reading, StoreConflict, node_at
from moldau.names import short_id
from moldau.runtime import Runtime

ATTEMPTS_MAX = 3


class BrokerConflict(MoldauError):
    """Another running broker has what this one needs: its id, or the controller's place."""


async def begin(
    store: MetadataStore,
    broker_id: int,
    runtime: Runtime,
    *,
    clean: bool,
    cluster_id: str | None,
    directories: Mapping[str, bool] | None,
) -> tuple[Image, Check]:
    """The cluster with this broker as its controller, and what each of its changes must check. Raises `BrokerConflict`,
    `StorageError`."""
    for attempt in range(ATTEMPTS_MAX):
        image = await store.read(read_image())
        if image is not None:
            if broker_id in (image.controller_id, *image.brokers):
                raise await store.read(id_in_use(broker_id))
            _check_no_other(image, broker_id)
        node = await store.read(node_at(layout.CONTROLLER_EPOCH))
        epoch, version = controller_epoch(node) + 1, None if node is None else node.version
        fence = Check(layout.CONTROLLER_EPOCH, 0 if version is None else version + 1)
        operations: list[NodeOperation] = [
            layout.controller_epoch(epoch, version),
            layout.controller(broker_id, runtime.clock.now_ms()),
        ]
        if image is None:
            operations += layout.new_cluster(cluster_id or new_cluster_id(runtime))
        else:
            operations += await store.read(layout.missing())
            lead = partial(_led_again, image, broker_id, epoch, clean=clean, directories=directories)
            operations += await runtime.run(lead)
        try:
            results = await store.multi(operations)
        except StoreConflict:  # another broker was faster: look again
            if attempt + 1 == ATTEMPTS_MAX:
                raise
            continue
        if image is not None:
            return image_after(image, nodes_after(operations, results))[0], fence
        break
    image = await store.read(read_image())
    assert image is not None
    return image, fence


def _led_again(
    image: Image, broker_id: int, epoch: int, *, clean: bool, directories: Mapping[str, bool] | None
) -> list[NodeOperation]:
    topics = elections.lead_again(image, broker_id, clean=clean, directories=directories)
    return [step for topic in topics for step in layout.topic_changed(image.topics[topic.name], topic, epoch)]


def id_in_use(broker_id: int) -> Reading[BrokerConflict]:
    """The error that another broker with this id is running. Raises `StorageError`."""
    registered = yield from registration_of(broker_id)
    where = ""
    if registered is not None:
        since = f" (registered at {registered.since})" if registered.since else ""
        where = f" at {registered.broker.endpoints[0]}{since}"
    return BrokerConflict(
        f"another broker with the id {broker_id} is running{where}: give this one another id (node.id), or stop the "
        "other one. If it was killed, its registration ends with its session"
    )


def _check_no_other(image: Image, broker_id: int) -> None:
    other = image.controller_id
    if other != NO_LEADER:
        where = f" ({image.brokers[other].endpoints[0]})" if other in image.brokers else ""
        raise BrokerConflict(
            f"broker {other}{where} is running in this cluster, which is that of a broker alone: stop it before "
            f"starting broker {broker_id}, or give this one a store of its own"
        )


def new_cluster_id(runtime: Runtime) -> str:
    """As Kafka's: a UUID in 22 characters that does not begin with a dash, which command lines take for an option."""
    while (cluster_id := short_id(runtime.random.uuid())).startswith("-"):
        pass
    return cluster_id
