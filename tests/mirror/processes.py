"""A mirror between two clusters of broker processes, its worker a process as well: all of them are killed (SIGKILL)."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from harness.brokers import SOURCE
from harness.patience import stretched
from harness.replicated_brokers import ReplicatedBrokers

KINDS = ("worker", "source", "target")
AWAY_S_MAX = 2.0
CLEANED = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "4000000",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class MirrorWorkerProcess:
    """`moldau mirror start`; every start goes on with the same log file."""

    def __init__(self, folder: Path, source: str, target: str, topics: str):
        self._log = folder / "worker.log"
        self._arguments = ["--from", source, "--to", target, "--topics", topics, "--refresh", "0.5"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moldau", "mirror", "start", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
            )

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        assert self._end(signal.SIGTERM) == 0, self.said()[-4000:]

    def _end(self, number: int) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        return process.wait(stretched(60))

    def check(self) -> None:
        """It runs, has met no fault of its own, and has stopped no partition."""
        assert self._process is not None and self._process.poll() is None, self.said()[-4000:]
        said = self.said()
        assert "Traceback" not in said and "no longer" not in said, said[-8000:]

    def said(self) -> str:
        return self._log.read_text()


class MirroredClusters:
    """`kill` strikes one of all processes, and starts it again. `worker` is started by the test."""

    def __init__(self, folder: Path, topics: str, brokers: tuple[int, int]):
        ends = []
        for name, count in zip(("source", "target"), brokers, strict=True):
            (folder / name).mkdir()
            ends.append(ReplicatedBrokers(folder / name, CLEANED, count=count))
        self.source, self.target = ends
        self._folder = folder
        self._topics = topics

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        try:
            self.source.start()
            self.target.start()
            self.worker = MirrorWorkerProcess(self._folder, self.source.address, self.target.address, self._topics)
            yield
            self.worker.stop()
        finally:
            if hasattr(self, "worker"):
                self.worker.kill()
            self.source.kill()
            self.target.kill()

    def kill(self, what: str, chance: random.Random) -> None:
        """SIGKILL at some moment of the next second; a broker is away for up to two more."""
        time.sleep(chance.random())
        if what == "worker":
            self.worker.check()
            self.worker.kill()
            self.worker.start()
            return
        cluster = self.source if what == "source" else self.target
        cluster.wait_until_whole()
        number = chance.choice([*cluster.brokers])
        cluster.brokers[number].kill()
        time.sleep(chance.random() * AWAY_S_MAX)
        cluster.brokers[number].start()
