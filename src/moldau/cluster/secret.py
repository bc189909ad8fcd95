"""The cluster's secret, by which its brokers know each other (`peers/proof.py`).

It is in the metadata store: no request of a client returns it, and who can read the store is trusted like a broker. If
the brokers also share a file (`secret_file.py`), both are needed. The store then has a keyed hash of the file's
secret, so that a broker with another file is refused when it starts.
"""

import contextlib
import hmac
import logging

from moldau.cluster.secret_file import SETTING
from moldau.cluster.state import layout
from moldau.cluster.state.reading import secret_of
from moldau.errors import StorageError
from moldau.metadata_store.store import (
    BadVersion,
    MetadataStore,
    Node,
    NodeExists,
    NoNode,
    OutcomeUnknown,
    node_at,
)
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)


async def cluster_secret(store: MetadataStore, runtime: Runtime, shared: bytes = b"") -> bytes:
    """Read the secret; a cluster that has none yet gets one. `shared` is the secret in the brokers' file, empty without
    one; the first broker that has it makes all others need it. Raises `StorageError`: this broker has another secret
    than the others, too."""
    while True:
        node = await _made(store, runtime, shared)
        value, of_file = secret_of(node)
        if of_file is not None:
            _check(value, of_file, shared)
            return hmac.digest(shared, value, "sha256")
        if not shared:
            return value
        await _require(store, node, value, shared)


async def stored_secret(store: MetadataStore, runtime: Runtime) -> bytes:
    """The part of the secret that is in the store, whether the brokers share a file or not: what they agree on and
    clients do not know. Raises `StorageError`."""
    return secret_of(await _made(store, runtime, b""))[0]


async def _made(store: MetadataStore, runtime: Runtime, shared: bytes) -> Node:
    """The secret's node, which is made if there is none."""
    while True:
        node = await store.read(node_at(layout.SECRET))
        if node is not None:
            return node
        value = runtime.random.uuid().bytes + runtime.random.uuid().bytes  # 244 bits of the operating system's
        try:
            with contextlib.suppress(NodeExists, OutcomeUnknown):  # another broker was faster, or nobody knows
                await store.multi([layout.secret(value, _hash_of(value, shared) if shared else None)])
        except NoNode as missing:
            raise StorageError(
                f"ZooKeeper has {layout.CLUSTER_ID} but no {missing.path}, so this is not a cluster of Moldau's: name "
                "an empty chroot in zookeeper.connect"
            ) from None


def _check(value: bytes, of_file: bytes, shared: bytes) -> None:
    if not shared:
        raise StorageError(
            f"the brokers of this cluster share a secret: set {SETTING} to a copy of the file that another broker has"
        )
    if not hmac.compare_digest(of_file, _hash_of(value, shared)):
        raise StorageError(
            f"the file that {SETTING} names has another secret than the brokers of this cluster: copy the file from one"
            " of them"
        )


async def _require(store: MetadataStore, node: Node, value: bytes, shared: bytes) -> None:
    """Make the cluster one whose brokers need the file."""
    with contextlib.suppress(BadVersion, OutcomeUnknown):  # another broker was faster, or nobody knows: look again
        await store.multi([layout.secret_required(value, _hash_of(value, shared), node.version)])
        logger.warning("from now on the brokers of this cluster need the file that %s names", SETTING)


def _hash_of(value: bytes, shared: bytes) -> bytes:
    """What the store knows of the file's secret. It cannot be turned back, and another cluster has another one."""
    return hmac.digest(shared, b"the file of this cluster" + value, "sha256")
