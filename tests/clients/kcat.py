"""kcat as a `Client`: each verb is a command, and its consumer is a command that runs until it is stopped.

kcat commits when it leaves its group, never on demand. It has no administration but its list of metadata.
"""

import json
import select
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.patience import Deadline, stretched
from tests.clients.client import TAKE_SECONDS_MAX, Client, ClientFailed, Message

SECONDS_MAX = 30


class Kcat(Client):
    def __init__(self, program: str, bootstrap: str, folder: Path):
        self._command = [program, "-b", bootstrap, "-m", "20"]
        self._errors = folder / "kcat.log"
        self._consumer: subprocess.Popen[bytes] | None = None

    def produce(self, topic: str, messages: Sequence[Message], compression: str | None = None) -> None:
        headers = [word for name, value in messages[0].headers.items() for word in ("-H", f"{name}={value}")]
        codec = ["-z", compression] if compression else []
        lines = "".join(f"{message.key}\t{message.value}\n" for message in messages)
        self._run(["-P", "-t", topic, "-K", "\t", "-X", "enable.idempotence=true", *headers, *codec], lines)

    def subscribe(self, topic: str, group: str) -> None:
        options = ["-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=60000", "-q", "-u", "-J", "-E"]
        with open(self._errors, "a") as errors:
            self._consumer = subprocess.Popen(
                [*self._command, *options, "-G", group, topic],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
            )

    def take(self, count: int) -> list[Message]:
        assert self._consumer is not None and self._consumer.stdout is not None
        taken: list[Message] = []
        until = Deadline(TAKE_SECONDS_MAX)
        while len(taken) < count:
            ready, _, _ = select.select([self._consumer.stdout], [], [], until.left_s)
            if not ready or not (line := self._consumer.stdout.readline()):
                break
            row = json.loads(line)
            names, texts = row["headers"][::2], row["headers"][1::2]
            headers = dict(zip(names, texts, strict=True))
            taken.append(Message(row["key"], row["payload"], headers, row["partition"], row["offset"]))
        return taken

    def commit(self) -> None:
        pass

    def unsubscribe(self) -> None:
        assert self._consumer is not None and self._consumer.stdout is not None
        self._consumer.send_signal(signal.SIGINT)
        try:
            self._consumer.wait(stretched(SECONDS_MAX))
        finally:
            self._consumer.kill()
            self._consumer.wait()
            self._consumer.stdout.close()
            self._consumer = None

    def create_topic(self, topic: str, partitions: int) -> None:
        """By asking for it: the broker creates it with its own number of partitions."""
        self.partitions(topic)

    def topics(self) -> list[str]:
        return [row["topic"] for row in json.loads(self._run(["-L", "-J"]))["topics"]]

    def partitions(self, topic: str) -> int:
        (found,) = json.loads(self._run(["-L", "-J", "-t", topic, "-X", "allow.auto.create.topics=true"]))["topics"]
        return len(found["partitions"])

    def end_offsets(self, topic: str) -> int:
        asked = [word for number in range(self.partitions(topic)) for word in ("-t", f"{topic}:{number}:-1")]
        return sum(int(line.rpartition(" ")[2]) for line in self._run(["-Q", *asked]).splitlines())

    def close(self) -> None:
        if self._consumer:
            self.unsubscribe()

    def _run(self, options: Sequence[str], lines: str = "") -> str:
        done = subprocess.run(
            [*self._command, *options], input=lines, capture_output=True, text=True, timeout=stretched(SECONDS_MAX)
        )
        if done.returncode:
            raise ClientFailed(f"kcat {' '.join(options)}: {done.stderr}")
        return done.stdout
