"""The demo's mirror: a worker in a thread copies the topics from the origin into the cluster where they are loaded."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from moldau.client.administration.admin import Admin
from moldau.errors import MoldauError
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.worker import MirrorSettings, MirrorWorker
from moldau.names import TopicPartition
from moldau.pipeline.positions import latest

WAIT_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.05


class MirrorBehind(MoldauError):
    """The mirror has ended, or does not arrive at the origin's end."""


class RunningMirror:
    """The mirror of an origin."""

    def __init__(self, origin: str, target: str, topics: Sequence[str]):
        self._origin, self._target = origin, target
        self._topics = topics
        self._loop = asyncio.new_event_loop()
        self._working: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self.failure: MoldauError | None = None

    def start(self) -> None:
        """Return when the target has all topics. Raises `MirrorBehind`."""
        self._thread.start()
        with Admin(self._target) as admin:
            self._wait(lambda: {*self._topics} <= {*admin.list_topics()}, "has not made all topics")

    def stop(self) -> None:
        """End the worker."""
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(lambda: self._working and self._working.cancel())
        self._thread.join()

    def wait_for(self, partitions: Sequence[TopicPartition]) -> None:
        """Return when the target has all records that the origin has now. Raises `MirrorBehind`."""
        ends = latest(self._origin, partitions)
        self._wait(lambda: latest(self._target, partitions) == ends, "has not copied all records")

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        give_up = time.monotonic() + WAIT_SECONDS_MAX
        while not is_so():
            if self.failure is not None:
                raise MirrorBehind(f"The mirror has ended: {self.failure}")
            if time.monotonic() > give_up:
                raise MirrorBehind(f"The mirror {what} after {WAIT_SECONDS_MAX:.0f} s.")
            time.sleep(LOOK_SECONDS)

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._working = self._loop.create_task(self._work())
            try:
                self._loop.run_until_complete(self._working)
            except asyncio.CancelledError:
                pass
            except MoldauError as failure:
                self.failure = failure

    async def _work(self) -> None:
        settings = MirrorSettings(re.compile("|".join(map(re.escape, self._topics))), groups=re.compile("(?!)"))
        async with ClusterEnd(self._origin, "origin") as source, ClusterEnd(self._target, "mirror") as target:
            await MirrorWorker(source, target, settings).run()


@contextlib.contextmanager
def running_mirror(origin: str, target: str, topics: Sequence[str]) -> Iterator[RunningMirror]:
    """Mirror these topics while the block runs. Raises `MirrorBehind`."""
    mirror = RunningMirror(origin, target, topics)
    try:
        mirror.start()
        yield mirror
    finally:
        mirror.stop()
