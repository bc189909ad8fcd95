"""The cluster's secret in the metadata store, by which its brokers know each other (`peers/proof.py`).

No request of a client returns it: who can read the metadata store is trusted like a broker.
"""

import contextlib

from moldau.cluster.state import layout
from moldau.cluster.state.reading import secret_of
from moldau.errors import StorageError
from moldau.metadata_store.store import MetadataStore, NodeExists, NoNode, OutcomeUnknown, node_at
from moldau.runtime import Runtime


async def cluster_secret(store: MetadataStore, runtime: Runtime) -> bytes:
    """Read the secret; a cluster that has none yet gets one. Raises `StorageError`."""
    while True:
        node = await store.read(node_at(layout.SECRET))
        if node is not None:
            return secret_of(node)
        value = runtime.random.uuid().bytes + runtime.random.uuid().bytes  # 244 bits of the operating system's
        try:
            with contextlib.suppress(NodeExists, OutcomeUnknown):  # another broker was faster, or nobody knows
                await store.multi([layout.secret(value)])
        except NoNode as missing:
            raise StorageError(
                f"ZooKeeper has {layout.CLUSTER_ID} but no {missing.path}, so this is not a cluster of Moldau's: name "
                "an empty chroot in zookeeper.connect"
            ) from None
