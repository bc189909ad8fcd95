"""Many nodes of ZooKeeper read by one question, which kazoo 2.11 cannot ask. Both sides need a twentieth of the
processor time of a question for each node.

ZooKeeper answers it from version 3.6 on; an earlier server ends the session of a client that asks. So the server is
asked for its version first, by `srvr` on another connection. If it does not tell, nodes are read one by one.
"""

import contextlib
import re
import socket
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import GetData, MultiHeader, int_struct, read_buffer, stat_struct
from kazoo.protocol.states import ZnodeStat

TOGETHER = 100
"""Nodes of one question."""
_SINCE = (3, 6)
_VERSION = re.compile(rb"^Zookeeper version: (\d+)\.(\d+)", re.MULTILINE)
_VERSION_S = 2.0
_VERSION_BYTES_MAX = 65_536
_FAILED = -1
"""The type of a read's result if it was refused, and of the header behind the last."""
_END = MultiHeader(_FAILED, True, -1).serialize()

NodeOrError: TypeAlias = tuple[bytes, ZnodeStat] | KazooException


class _MultiRead:
    """As kazoo's requests are. Each node's own refusal is in the answer."""

    type = 22

    def __init__(self, paths: Sequence[str]):
        self._paths = paths

    def serialize(self) -> bytearray:
        header = MultiHeader(GetData.type, False, -1).serialize()
        return bytearray().join([*(header + GetData(path, None).serialize() for path in self._paths), _END])

    @staticmethod
    def deserialize(data: bytes, offset: int) -> list[NodeOrError]:
        nodes: list[NodeOrError] = []
        while True:
            header, offset = MultiHeader.deserialize(data, offset)
            if header.done:
                return nodes
            if header.type == _FAILED:
                [code] = int_struct.unpack_from(data, offset)
                offset += int_struct.size
                nodes.append(EXCEPTIONS[code]())
            else:
                content, offset = read_buffer(data, offset)
                nodes.append((content, ZnodeStat._make(stat_struct.unpack_from(data, offset))))
                offset += stat_struct.size


def read_async(client: KazooClient, paths: Sequence[str]) -> Any:
    """Ask for these nodes together; the result is a list of `NodeOrError`."""
    result = client.handler.async_result()
    client._call(_MultiRead(paths), result)
    return result


def is_answered_by(connect: Callable[[], socket.socket]) -> bool:
    """Whether the server to which `connect` opens connections answers such questions. Blocks."""
    said = b""
    with contextlib.suppress(OSError, KazooTimeoutError), connect() as connection:
        connection.settimeout(_VERSION_S)
        connection.sendall(b"srvr")
        while len(said) < _VERSION_BYTES_MAX and (more := connection.recv(4096)):
            said += more
    version = _VERSION.search(said)
    return version is not None and (int(version[1]), int(version[2])) >= _SINCE
