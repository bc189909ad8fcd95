"""A transaction of kazoo's that is answered with the stats of the nodes it has created and set.

ZooKeeper answers a `create` in a transaction with the path alone. A `create2` (ZooKeeper 3.5) is answered with the
node's stat, too, which kazoo 2.11 cannot read in a transaction.
"""

from typing import Any

from kazoo.client import TransactionRequest
from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol.serialization import (
    Create,
    Create2,
    MultiHeader,
    SetData,
    Transaction,
    int_struct,
    read_string,
    stat_struct,
)
from kazoo.protocol.states import ZnodeStat

_FAILED = -1
"""The type of an operation's result if the transaction was refused."""


class _Answered(Transaction):  # type: ignore[misc]
    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
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
            elif header.type in (Create2.type, SetData.type):
                if header.type == Create2.type:
                    _, offset = read_string(data, offset)
                result = ZnodeStat._make(stat_struct.unpack_from(data, offset))
                offset += stat_struct.size
            results.append(result)


def commit_async(transaction: TransactionRequest) -> Any:
    """Send the transaction. Each operation's result is the stat of the node that it created or set, None if it did
    neither, or an exception."""
    operations = [Create2(*each) if isinstance(each, Create) else each for each in transaction.operations]
    result = transaction.client.handler.async_result()
    transaction.client._call(_Answered(operations), result)
    return result
