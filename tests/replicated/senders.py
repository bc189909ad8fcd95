"""The senders of a run as processes of their own, and a probe that says whether every partition takes records."""

import os
import subprocess
import sys
import threading
from array import array
from pathlib import Path
from types import TracebackType

from harness.brokers import SOURCE
from harness.patience import SECONDS, stretched, wait_until
from moldau.client.producing.producer import Producer
from tests.environments import python_with
from tests.replicated.sending import FOREVER_MS, key_of, place_of, value_of
from tests.versions import AIOKAFKA, CONFLUENT

SENDING = Path(__file__).with_name("sending.py")
PINS = {"confluent": CONFLUENT, "aiokafka": AIOKAFKA}
PROBE_MS = 1_000
"""A request of the probe is sent anew after that time."""
SETTLED_S = 120
"""How long it may take until all that was sent is acknowledged, when nothing happens any more."""


class Sender:
    """A process that sends; use it with `with`. `acknowledged` is the number of its records that were, as it said
    last."""

    def __init__(self, client: str, addresses: str, topic: str, name: str, rate: int, folder: Path):
        python = python_with(PINS[client]) if client in PINS else sys.executable
        self.name = name
        self.acknowledged = 0
        self._result = folder / f"{name}.places"
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, SENDING, client, addresses, topic, name, str(rate), self._result],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
                text=True,
            )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.acknowledged = int(line)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def progress(self) -> bool:
        """Wait until more is acknowledged than now. Returns whether it was, before long."""
        before = self.acknowledged
        return wait_until(lambda: self.acknowledged > before or not self.runs, 4 * SECONDS) and self.runs

    def finish(self, count: int) -> "array[int]":
        """Have it send the rest of `count` records, and wait until all are acknowledged; where each of them is."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        code = self._process.wait(stretched(SETTLED_S))
        assert code == 0, f"{self.name}: {self.said()}"
        places = array("q")
        places.frombytes(self._result.read_bytes())
        return places

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-2000:]

    def __enter__(self) -> "Sender":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reading.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Probe:
    """One record for each partition at a time: a sender as the others, but that it names the partition."""

    name = "probe"

    def __init__(self, addresses: str, topic: str, partitions: int):
        self.places = array("q")
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(addresses, linger_ms=0, request_timeout_ms=PROBE_MS, delivery_timeout_ms=FOREVER_MS)

    def wait(self) -> None:
        """Returns when every partition has acknowledged a record that was sent after the call."""
        sent = []
        for partition in range(self._partitions):
            number = len(self.places) + partition
            key, value = key_of(self.name, number), value_of(self.name, number)
            sent.append(self._producer.send(self._topic, value, key, partition=partition))
        for delivery in sent:
            at = delivery.result(stretched(4 * SECONDS))
            self.places.append(place_of(at.partition, at.offset))

    def close(self) -> None:
        self._producer.close(0)
