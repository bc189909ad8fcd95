"""What befalls a broker and the connections to it while a client is at work, drawn from a seed.

Each fault lasts until the client has felt it, which is asked of the proxy and never of a clock; only a delay is a time.
"""

import os
import random
import signal
import time
from collections.abc import Sequence

from harness.brokers import Broker
from harness.patience import wait_until
from harness.proxy import Proxy

KINDS = ("kill", "cut", "cut_request", "cut_reply", "lose_replies", "pause", "delay")
DELAYS = 10
DELAY_S_MAX = 0.05


class Faults:
    """Faults of a broker behind a proxy; `each` does one. `happened` names them in order. `kinds`: only these.
    `request_bytes_max`: requests break within so many bytes."""

    def __init__(
        self,
        broker: Broker,
        proxy: Proxy,
        seed: int,
        kinds: Sequence[str] = KINDS,
        request_bytes_max: int = 20_000,
    ):
        self._broker = broker
        self._proxy = proxy
        self._random = random.Random(seed)
        self._kinds = kinds
        self._request_bytes_max = request_bytes_max
        self._left: list[str] = []
        self.happened: list[str] = []

    def each(self) -> str:
        """The next fault: all of them in a random order, and again. Returns its name."""
        if not self._left:
            self._left = self._random.sample(self._kinds, len(self._kinds))
        self.happened.append(self._left.pop())
        getattr(self, self.happened[-1])()
        self._proxy.heal()
        return self.happened[-1]

    def kill(self) -> None:
        """SIGKILL, and a start on the same port and files."""
        self._broker.kill()
        self._broker.start()

    def cut(self) -> None:
        self._proxy.cut()

    def cut_request(self) -> None:
        """Break connections within a request, so that the broker gets half of it."""
        self._proxy.cut_requests_after(self._random.randrange(self._request_bytes_max))
        self._redialled()

    def cut_reply(self) -> None:
        """Break connections within a reply: the broker has appended what the client has to send again."""
        self._proxy.cut_replies_after(self._random.randrange(200))
        self._redialled()

    def lose_replies(self) -> None:
        """Let the broker answer and nobody hear it, until the client's request times out and it dials again."""
        before = self._proxy.lost_bytes
        self._proxy.lose_replies()
        assert wait_until(lambda: self._proxy.lost_bytes > before), f"no reply was lost: {self.happened}"
        self._redialled()

    def pause(self) -> None:
        """SIGSTOP until the client's request times out and it dials again; then the broker finds it all at once."""
        os.kill(self._broker.pid, signal.SIGSTOP)
        try:
            self._redialled()
        finally:
            os.kill(self._broker.pid, signal.SIGCONT)

    def delay(self) -> None:
        """Hold replies back, wherever they are, again and again for some ms."""
        for _ in range(DELAYS):
            self._proxy.allow(replies=self._random.randrange(500))
            time.sleep(self._random.uniform(0, DELAY_S_MAX))

    def _redialled(self) -> None:
        before = self._proxy.accepted
        assert wait_until(lambda: self._proxy.accepted > before), f"no connection broke: {self.happened}"
