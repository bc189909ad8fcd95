"""Many nodes in one question: the answer's bytes, and which servers are asked."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

import pytest
from kazoo.exceptions import NoAuthError, NoNodeError

from harness.patience import stretched
from moldau.metadata_store import multi_read
from moldau.metadata_store.multi_read import _MultiRead, is_answered_by


def test_an_answer_has_each_node_or_why_there_is_none() -> None:
    stat = struct.pack(">qqqqiiiqiiq", 11, 12, 0, 0, 3, 0, 0, 7, 1, 0, 0)
    found = struct.pack(">ibi", 4, 0, 0) + struct.pack(">i", 1) + b"x" + stat
    answer = found + b"".join(struct.pack(">ibii", -1, 0, code, code) for code in (-101, -102))
    node, missing, refused = _MultiRead.deserialize(b"head" + answer + struct.pack(">ibi", -1, 1, -1), 4)
    assert isinstance(node, tuple)
    assert (node[0], node[1].czxid, node[1].version, node[1].ephemeralOwner) == (b"x", 11, 3, 7)
    assert isinstance(missing, NoNodeError)
    assert isinstance(refused, NoAuthError)


def served_by(said: bytes) -> tuple[Callable[[], socket.socket], threading.Thread]:
    """Connects to a server that says this to a `srvr`, and ends."""
    listener = socket.create_server(("localhost", 0))

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            assert connection.recv(4) == b"srvr"
            with contextlib.suppress(OSError):  # nobody reads all that is said
                connection.sendall(said)

    thread = threading.Thread(target=serve)
    thread.start()
    return lambda: socket.create_connection(listener.getsockname(), stretched()), thread


@pytest.mark.parametrize(
    ("said", "is_answered"),
    [
        (b"Zookeeper version: 3.9.5-293c895a, built on 2026-02-13\nMode: standalone\n", True),
        (b"Zookeeper version: 3.6.0--b4c89dc7, built on 02/25/2020\n", True),
        (b"Zookeeper version: 3.10.0\n", True),
        (b"Zookeeper version: 3.5.9-83df9301, built on 01/06/2021\n", False),
        (b"srvr is not executed because it is not in the whitelist.\n", False),
        (b"", False),
        (b"x" * 100_000, False),
    ],
)
def test_only_a_server_that_tells_a_version_with_it_is_asked_for_many_nodes(said: bytes, is_answered: bool) -> None:
    connect, thread = served_by(said)
    assert is_answered_by(connect) == is_answered
    thread.join()


def test_a_server_that_is_gone_or_says_nothing_is_asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_read, "_VERSION_S", 0.01)
    with socket.create_server(("localhost", 0)) as silent:
        address = silent.getsockname()
        assert not is_answered_by(lambda: socket.create_connection(address))
    assert not is_answered_by(lambda: socket.create_connection(address))
