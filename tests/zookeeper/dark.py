"""An address that takes no connection and refuses none, as a machine that is off."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress


@contextmanager
def dark_address() -> Iterator[str]:
    """Linux drops connections to a socket whose queue of unaccepted ones is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"
