"""The ports of a coordinator: the internal topic that it keeps its state in, and the state machine of one partition.

Whoever runs coordinators knows only these, not whether a partition holds groups or transactions.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol, TypeAlias

from moldau.coordinators.decision import Decision, InternalRecord, Now, Replies
from moldau.coordinators.replaying import Buffer
from moldau.errors import ErrorCode

MaySee: TypeAlias = Callable[[str], bool]
"""Whether a client may describe the topic of that name. It belongs to the event loop."""


class InternalLog(Protocol):
    """The partitions of one internal topic."""

    @property
    def name(self) -> str: ...
    def read_all(self, partition: int) -> AsyncIterator[Buffer]:
        """Whole batches from the start of the log to its end, in chunks."""

    def may_answer(self, partition: int) -> bool:
        """Whether no other broker can coordinate the partition by now: what is known here is up to date."""

    async def until_committed(self, partition: int) -> None:
        """Wait until all that the partition holds is committed. Raises `KafkaError`."""

    async def append(self, partition: int, batch: bytearray, now_ms: int) -> None:
        """Append one batch; returns once it is committed. Raises `KafkaError`."""


class StateMachine(Protocol):
    """The state of one partition. Only `apply` changes what the log holds."""

    def apply(self, record: InternalRecord, now: Now) -> Replies: ...
    def start(self, now: Now, out: Decision) -> Iterator[int]:
        """Replay has ended: get ready to decide, in parts. Yields the size of each part."""

    def tick(self, now: Now) -> Decision | None: ...
    def next_ms(self) -> int | None: ...
    def stop(self, error: ErrorCode) -> Replies: ...
