"""A transaction of ZooKeeper's that is answered with the stats of the nodes it has created and set.

ZooKeeper answers a `create` in a transaction with the path alone. From version 3.6 on, a `create2` is answered with the
node's stat, too, which kazoo 2.11 cannot read in a transaction; 3.5 answers it as a `create`.

The requests are not made by kazoo's own transaction, which spends more time on normalizing paths than on all else.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol import serialization
from kazoo.protocol.serialization import (
    CheckVersion,
    Create2,
    MultiHeader,
    SetData,
    Transaction,
    int_struct,
    read_string,
    stat_struct,
)
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL

from moldau.metadata_store.store import Check, Create, NodeOperation, Set

_FAILED = -1
"""The type of an operation's result if the transaction was refused."""


class _Answered(Transaction):  # type: ignore[misc]
    """`zxid` returns that of the answer that is being read: it created the new nodes."""

    zxid: Callable[[], int]

    def deserialize(self, data: bytes, offset: int) -> list[Any]:
        results: list[Any] = []
        while True:
            header, offset = MultiHeader.deserialize(data, offset)
            if header.done:
                return results
            result = None
            if header.type == _FAILED:
                [code] = int_struct.unpack_from(data, offset)
                offset += int_struct.size
                result = EXCEPTIONS[code]()
            elif header.type == serialization.Create.type:
                _, offset = read_string(data, offset)
                result = ZnodeStat(self.zxid(), self.zxid(), 0, 0, 0, 0, 0, 0, 0, 0, self.zxid())
            elif header.type in (Create2.type, SetData.type):
                if header.type == Create2.type:
                    _, offset = read_string(data, offset)
                result = ZnodeStat._make(stat_struct.unpack_from(data, offset))
                offset += stat_struct.size
            results.append(result)


def request_of(operation: NodeOperation, path: str, acl: Sequence[ACL]) -> Any:
    """The operation on the node at this path, chroot included; `acl` is for a node that it creates."""
    match operation:
        case Create():
            return Create2(path, operation.data, acl, int(operation.ephemeral))
        case Set():
            return SetData(path, operation.data, operation.version)
        case Check():
            return CheckVersion(path, operation.version)
    return serialization.Delete(path, operation.version)


def multi_async(client: KazooClient, requests: Sequence[Any]) -> Any:
    """Send the requests as one transaction. Each one's result is the stat of the node that it created or set, None if
    it did neither, or an exception."""
    result, transaction = client.handler.async_result(), _Answered(requests)
    transaction.zxid = lambda: client.last_zxid
    client._call(transaction, result)
    return result
