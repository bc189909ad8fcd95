"""Programs that work in transactions and say each step they have come to, to be killed, frozen and woken."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.patience import Deadline, stretched
from tests.clients.client import without_ours

FENCED = 3
"""What a worker ends with that another one with its transactional id has taken over from."""
HUNG = 4
"""What a worker ends with whose client library hung."""


class Worker:
    """One process; `said` is every line of its output so far."""

    def __init__(self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] = {}):
        self.said: list[str] = []
        self._log = log
        self._heard = threading.Condition()
        with open(log, "a") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**without_ours(os.environ), **environment},
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._heard:
                self.said.append(line.strip())
                self._heard.notify_all()
        with self._heard:
            self._heard.notify_all()

    def wait_until_it_says(self, line: str, seconds: float) -> bool:
        """Wait until it says so once more than before; False if it does not, or ends."""
        with self._heard:
            heard = len(self.said)
            return (
                self._heard.wait_for(lambda: line in self.said[heard:] or self.ended, stretched(seconds))
                and not self.ended
            )

    def wait_until_it_speaks(self, seconds: float) -> bool:
        """Wait until it says anything more than before."""
        with self._heard:
            heard = len(self.said)
            return self._heard.wait_for(lambda: len(self.said) > heard or self.ended, stretched(seconds))

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, frozen or not."""
        self.process.kill()
        self._reap()

    def end(self, seconds: float = 20) -> None:
        """Let it end by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(stretched(seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._reap()

    def wait_for_its_end(self, seconds: float) -> int | None:
        """Its exit code, None if it goes on."""
        try:
            return self.process.wait(stretched(seconds))
        except subprocess.TimeoutExpired:
            return None

    def errors(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def _reap(self) -> None:
        self.process.wait()
        self._listener.join()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


def wait_for(workers: Sequence[Worker], line: str, seconds: float) -> Worker | None:
    """The first of them to say so from now on; none if it takes too long."""
    heard = {id(worker): len(worker.said) for worker in workers}
    until = Deadline(seconds)
    while not until.passed:
        for worker in workers:
            if line in worker.said[heard[id(worker)] :]:
                return worker
        time.sleep(0.002)
    return None
