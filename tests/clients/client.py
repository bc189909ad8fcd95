"""The near end of a driver: a client library in a process of its own that does what lines of JSON tell it.

A request is `{"do": verb, ...}`, an answer `{"ok": value}` or `{"error": text}`. The verbs are the methods here. The
driver keeps its producer between calls, and its consumer from `subscribe` to `unsubscribe`, so that a test can see them
live through what happens to the broker.
"""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.patience import Deadline, stretched

DRIVERS = Path(__file__).parent / "drivers"
ANSWER_SECONDS_MAX = 100
TAKE_SECONDS_MAX = 60


class Message(NamedTuple):
    key: str | None
    value: str | None
    headers: Mapping[str, str] = {}
    partition: int = -1
    offset: int = -1


class Event(NamedTuple):
    """What a member went through, and when by the clock on the wall: `assigned`, `revoked`, `lost` with partitions
    (`topic-number`), or `took` with a record's value."""

    at_ms: int
    what: str
    names: list[str]


class ClientFailed(AssertionError):
    """The client raised an error, or did not answer."""


class Client:
    """What a scenario asks of a client library."""

    def __init__(
        self,
        command: Sequence[str | Path],
        bootstrap: str,
        folder: Path,
        environment: Mapping[str, str] = {},
        group_protocol: str = "",
    ):
        self._errors = folder / f"client-{time.monotonic_ns()}.log"
        with open(self._errors, "w") as errors:
            self._process = subprocess.Popen(
                [*command, bootstrap, *filter(None, [group_protocol])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**without_ours(os.environ), **environment},
            )
        self._unread = b""

    def produce(self, topic: str, messages: Sequence[Message], compression: str | None = None) -> None:
        """Send all and wait until the broker has acknowledged each."""
        sent = [{"key": m.key, "value": m.value, "headers": dict(m.headers)} for m in messages]
        self._ask("produce", topic=topic, messages=sent, compression=compression)

    def subscribe(self, topic: str, group: str, isolation: str = "read_uncommitted") -> None:
        """Become a consumer of that group, which begins at the start of the log and commits only when told."""
        self._ask("subscribe", topic=topic, group=group, isolation=isolation)

    def take(self, count: int) -> list[Message]:
        """The next `count` messages; fewer if no more came in time."""
        rows = self._ask("take", count=count, seconds=stretched(TAKE_SECONDS_MAX))
        return [Message(**row) for row in rows]

    def commit(self) -> None:
        """Commit what was taken, and wait for the answer."""
        self._ask("commit")

    def begin(self, producer: str, transactional_id: str) -> None:
        """Begin a transaction; a producer of that name is made if there is none, for this transactional id."""
        self._ask("begin", producer=producer, transactional_id=transactional_id)

    def write(self, producer: str, topic: str, messages: Sequence[Message]) -> None:
        """Send all in the transaction and wait until the broker has acknowledged each."""
        sent = [{"key": m.key, "value": m.value, "headers": dict(m.headers)} for m in messages]
        self._ask("write", producer=producer, topic=topic, messages=sent)

    def send_offsets(self, producer: str, group: str) -> None:
        """Make what was taken a commit of the group, with the transaction."""
        self._ask("send_offsets", producer=producer, group=group)

    def end(self, producer: str, commits: bool) -> None:
        """Commit the transaction, or abort it."""
        self._ask("end", producer=producer, commits=commits)

    def unsubscribe(self) -> None:
        """Close the consumer, which leaves its group."""
        self._ask("unsubscribe")

    def join(self, group: str, topics: str) -> None:
        """Be a member of a group that goes on reading by itself. `topics` is a topic, or an expression if it begins
        with ^."""
        self._ask("join", group=group, topics=topics)

    def events(self) -> list[Event]:
        """What the member went through since it was asked last."""
        return [Event(*row) for row in self._ask("events")]

    def leave(self) -> None:
        """The member leaves its group, and what it goes through with that is in its events."""
        self._ask("leave")

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def create_topic(self, topic: str, partitions: int) -> None:
        self._ask("create_topic", topic=topic, partitions=partitions)

    def configure(self, topic: str, settings: Mapping[str, str]) -> None:
        """Give the topic these settings, with the older AlterConfigs where the library has that."""
        self._ask("configure", topic=topic, settings=settings)

    def delete_topic(self, topic: str) -> None:
        self._ask("delete_topic", topic=topic)

    def topics(self) -> list[str]:
        found: list[str] = self._ask("topics")
        return found

    def partitions(self, topic: str) -> int:
        found: int = self._ask("partitions", topic=topic)
        return found

    def groups(self) -> list[str]:
        found: list[str] = self._ask("groups")
        return found

    def members(self, group: str) -> int:
        """How many members the group has."""
        found: int = self._ask("members", group=group)
        return found

    def committed(self, group: str, topic: str) -> int:
        """The sum of the group's committed offsets over the topic's partitions."""
        found: int = self._ask("committed", group=group, topic=topic)
        return found

    def end_offsets(self, topic: str) -> int:
        """The sum of the end offsets of the topic's partitions."""
        found: int = self._ask("end_offsets", topic=topic)
        return found

    def close(self) -> None:
        """End the program: closing its input tells it to."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(stretched(15))
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()

    def _ask(self, verb: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": verb, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
            answer = json.loads(self._line(verb))
        except (BrokenPipeError, json.JSONDecodeError) as error:
            raise ClientFailed(f"{verb}: {error}\n{self._said()}") from error
        if "error" in answer:
            raise ClientFailed(f"{verb}: {answer['error']}\n{self._said()}")
        return answer["ok"]

    def _line(self, verb: str) -> bytes:
        assert self._process.stdout is not None
        until = Deadline(ANSWER_SECONDS_MAX)
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._process.stdout], [], [], until.left_s)
            read = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
            if not read:
                raise ClientFailed(f"{verb}: no answer{' in time' if not ready else ''}\n{self._said()}")
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _said(self) -> str:
        return self._errors.read_text(errors="replace")[-4000:]


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would let our packages into theirs."""
    return {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
