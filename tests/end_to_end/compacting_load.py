"""Who writes while the broker is killed: threads that send, one request at a time or through our client, and know what
was acknowledged.

A load runs between `resume` and `pause`. A broker that goes away is no failure: the load tries again, from where it
cannot know what arrived. Any other failure is kept for whoever asks, and ends the load.
"""

import random
import threading
import time
from abc import abstractmethod
from collections import deque

from harness.patience import Deadline, stretched
from moldau.client.producing.delivery import Delivery
from moldau.client.producing.producer import Producer
from moldau.protocol.apis import FIND_COORDINATOR, INIT_PRODUCER_ID, OFFSET_COMMIT, OFFSET_FETCH
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from moldau.records.batch import encode_batch
from moldau.records.compression import LZ4, NONE
from tests.end_to_end.ledger import Ledger
from tests.end_to_end.raw import Raw

ACKS_ALL = -1
PATIENCE_S = 20
RETRIED = (14, 15, 16)
"""A coordinator that loads, is not available yet, or is not this broker yet."""
GROUPS = 20
OUTSTANDING_MAX = 200


class Load:
    """A thread that calls `step` while it may."""

    def __init__(self, address: str, seed: int):
        self.failure: BaseException | None = None
        self._address = address
        self._random = random.Random(seed)
        self._running = threading.Event()
        self._idle = threading.Event()
        self._gone = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @abstractmethod
    def step(self, broker: Raw) -> None:
        """One request. A broker that is gone is an `OSError` or an `EOFError`."""

    @property
    def goes_on(self) -> bool:
        return self._running.is_set() and not self._ended

    def resume(self) -> None:
        self._idle.clear()
        self._running.set()

    def pause(self) -> None:
        """Returns when nothing is under way. Raises what the load failed with."""
        self._running.clear()
        assert self._idle.wait(stretched(PATIENCE_S)), f"{self} does not come to rest"
        if self.failure is not None:
            raise self.failure

    def end(self) -> None:
        self._ended = True
        self._running.set()
        self._thread.join(stretched(PATIENCE_S))

    def _run(self) -> None:
        try:
            while True:
                if not self._running.is_set():
                    self._idle.set()
                    self._running.wait()
                if self._ended:
                    return
                try:
                    with Raw(self._address, PATIENCE_S) as broker:
                        while self.goes_on:
                            self.step(broker)
                except (OSError, EOFError):
                    self._gone.wait(0.02)
        except BaseException as failure:
            self.failure = failure
            self._idle.set()


class Writing(Load):
    """Batches of a few records, and no second try: what became of a batch whose answer did not come is not known."""

    codec = NONE

    def __init__(self, address: str, seed: int, ledger: Ledger, batch_max: int):
        self.ledger = ledger
        self._batch_max = batch_max
        super().__init__(address, seed)

    def step(self, broker: Raw) -> None:
        numbers = self.ledger.send(self._random.randint(1, self._batch_max))
        now_ms = time.time_ns() // 1_000_000
        rows = [self.ledger.row(number, now_ms) for number in numbers]
        error, base = broker.produce(self.ledger.topic, bytes(encode_batch(rows, codec=self.codec)), acks=ACKS_ALL)
        assert not error, f"{self.ledger.topic}: error {error}"
        for at, number in enumerate(numbers):
            self.ledger.acknowledged(number, base + at)


class WritingCompressed(Writing):
    codec = LZ4


class WritingOnce(Writing):
    """With a producer id and sequences: a batch is sent until it is acknowledged, and is in the log once."""

    _pending: range | None = None
    _producer: tuple[int, int] | None = None

    def step(self, broker: Raw) -> None:
        if self._producer is None:
            answer = broker.ask(INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None))
            assert not answer.error_code, answer
            self._producer = answer.producer_id, answer.producer_epoch
        if self._pending is None:
            self._pending = self.ledger.send(self._random.randint(1, self._batch_max))
        numbers, now_ms = self._pending, time.time_ns() // 1_000_000
        batch = encode_batch(
            [self.ledger.row(number, now_ms) for number in numbers],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=numbers[0],
        )
        error, base = broker.produce(self.ledger.topic, bytes(batch), acks=ACKS_ALL)
        assert not error, f"{self.ledger.topic}: error {error}"
        self._pending = None
        for at, number in enumerate(numbers):
            self.ledger.confirmed(number, base + at)


class OurClient(Load):
    """Our own producer, idempotent: nothing it was given may fail, whatever becomes of the broker.

    It has delivered a record before the first kill: a producer that knows no topic yet waits for a broker to ask.
    """

    def __init__(self, address: str, seed: int, ledger: Ledger):
        self.ledger = ledger
        self._producer = Producer(address, request_timeout_ms=5_000, linger_ms=2)
        self._deliveries: deque[tuple[int, Delivery]] = deque()
        super().__init__(address, seed)
        self._send(1)
        self.settle()

    def step(self, broker: Raw) -> None:
        self._send(self._random.randint(1, 20))
        while len(self._deliveries) > OUTSTANDING_MAX and self.goes_on:
            self._collect(0.05)

    def _send(self, count: int) -> None:
        for number in self.ledger.send(count):
            row = self.ledger.row(number, time.time_ns() // 1_000_000)
            delivery = self._producer.send(self.ledger.topic, row.value, row.key, headers=row.headers)
            self._deliveries.append((number, delivery))

    def _collect(self, wait_s: float) -> None:
        """Note what was delivered; wait so long for the first."""
        try:
            while self._deliveries:
                number, delivery = self._deliveries[0]
                offset = delivery.result(wait_s).offset
                self._deliveries.popleft()
                self.ledger.acknowledged(number, offset)
                wait_s = 0
        except TimeoutError:
            pass

    def settle(self) -> None:
        """Wait until all that was sent is acknowledged, while paused."""
        while self._deliveries:
            before = len(self._deliveries)
            self._collect(stretched(PATIENCE_S))
            assert len(self._deliveries) < before, "nothing is delivered"

    def end(self) -> None:
        super().end()
        self._producer.close(5)


class Committing(Load):
    """Groups whose offsets rise. `sent` and `acknowledged` hold the highest of each."""

    def __init__(self, address: str, seed: int, topic: str):
        self.sent = [0] * GROUPS
        self.acknowledged = [0] * GROUPS
        self._topic = topic
        super().__init__(address, seed)

    def step(self, broker: Raw) -> None:
        group = self._random.randrange(GROUPS)
        offset = self.sent[group] = self.sent[group] + 1
        if not self._commit(broker, group, offset):
            broker.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest(key=name_of(group)))
            self._gone.wait(0.01)

    def _commit(self, broker: Raw, group: int, offset: int) -> bool:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topics = [OffsetCommitRequestTopic(name=self._topic, partitions=[part])]
        answer = broker.ask(OFFSET_COMMIT, 7, OffsetCommitRequest(group_id=name_of(group), topics=topics))
        error = answer.topics[0].partitions[0].error_code
        if error in RETRIED:
            return False
        assert not error, f"{name_of(group)}: error {error}"
        self.acknowledged[group] = offset
        return True

    def problems(self, broker: Raw) -> list[str]:
        """Committed offsets that are below what was acknowledged, or were never sent."""
        wrong = []
        for group, acknowledged in enumerate(self.acknowledged):
            there = self._committed(broker, group) if acknowledged else 0
            if not acknowledged <= there <= self.sent[group]:
                sent = self.sent[group]
                wrong.append(f"{name_of(group)}: {there} is committed, {acknowledged} was acknowledged, {sent} sent")
        return wrong

    def _committed(self, broker: Raw, group: int) -> int:
        topics = [OffsetFetchRequestTopic(name=self._topic, partition_indexes=[0])]
        until = Deadline(PATIENCE_S)
        while True:
            answer = broker.ask(OFFSET_FETCH, 7, OffsetFetchRequest(group_id=name_of(group), topics=topics))
            if answer.error_code not in RETRIED:
                break
            assert not until.passed, "the coordinator does not load"
            self._gone.wait(0.02)
        assert not answer.error_code, answer
        offset: int = answer.topics[0].partitions[0].committed_offset
        return max(offset, 0)


def name_of(group: int) -> str:
    return f"group-{group}"
