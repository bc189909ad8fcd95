"""The answer to a transaction, as two versions of ZooKeeper give it."""

import struct

import pytest
from kazoo.exceptions import RolledBackError
from kazoo.protocol.states import ZnodeStat

from moldau.metadata_store.multi_request import _Answered

STAT = struct.pack(">qqqqiiiqiiq", 11, 11, 0, 0, 0, 0, 0, 0, 1, 0, 11)
PATH = struct.pack(">i", 2) + b"/a"
END = struct.pack(">ibi", -1, 1, -1)


@pytest.mark.parametrize(
    "created",
    [struct.pack(">ibi", 15, 0, 0) + PATH + STAT, struct.pack(">ibi", 1, 0, 0) + PATH],
    ids=["3.6 and newer", "3.5"],
)
def test_a_node_that_was_created_has_its_version_and_the_zxid_that_created_it(created: bytes) -> None:
    transaction = _Answered([])
    transaction.zxid = lambda: 11
    checked, failed = struct.pack(">ibi", 13, 0, 0), struct.pack(">ibii", -1, 0, 0, 0)
    node, check, refused = transaction.deserialize(created + checked + failed + END, 0)
    assert isinstance(node, ZnodeStat)
    assert (node.czxid, node.version) == (11, 0)
    assert check is None
    assert isinstance(refused, RolledBackError)
