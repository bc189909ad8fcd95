"""What is written to the source while processes of a mirror are killed, and read by a group there: who was told that a
record is committed knows where it is."""

import contextlib
import threading
from array import array
from collections.abc import Iterator

from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.delivery import Delivery
from moldau.client.producing.producer import Producer
from moldau.errors import KafkaError, MoldauError
from moldau.names import TopicPartition

GROUP = "readers"
KEYS = 500
TABLE_EVERY = 10


class Ledger:
    """Numbers of records by partition and offset: those whose writers were told that they are committed."""

    def __init__(self) -> None:
        self._numbers: dict[TopicPartition, array[int]] = {}
        self.count = 0

    def note(self, tp: TopicPartition, offset: int, number: int) -> None:
        numbers = self._numbers.setdefault(tp, array("q"))
        if len(numbers) <= offset:
            numbers.extend([-1] * (offset + 1 - len(numbers)))
        numbers[offset] = number
        self.count += 1

    def of(self, tp: TopicPartition) -> Iterator[tuple[int, int]]:
        """Offsets and numbers."""
        return ((at, number) for at, number in enumerate(self._numbers.get(tp, ())) if number >= 0)


def value(number: int) -> bytes:
    return b"record %d" % number


class MirroredLoad:
    """An idempotent producer writes to `killed` and, one record of ten, to the compacted topic `table`; a transactional
    one writes to `killed`, and aborts every other transaction."""

    def __init__(self, address: str, partitions: int, per_transaction: int):
        self.killed, self.table = Ledger(), Ledger()
        self.ended = {"aborted": 0, "committed": 0, "unknown": 0}
        self._address = address
        self._partitions = partitions
        self._per_transaction = per_transaction
        self._number = 0
        self._producer = Producer(address, acks="all", compression_type="lz4", linger_ms=5)
        self._transactional = self._transactional_producer()

    def close(self) -> None:
        self._producer.close()
        with contextlib.suppress(MoldauError):
            self._transactional.close()

    def write(self, count: int) -> None:
        """Returns once all of it is acknowledged."""
        rest = count
        while rest > 0:
            some = min(rest, 4 * self._per_transaction)
            self._write_plain(some - some // 4)
            self._write_transaction(some // 4)
            rest -= some

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _write_plain(self, count: int) -> None:
        sent: list[tuple[Ledger, TopicPartition, int, Delivery]] = []
        for number in (self._next() for _ in range(count)):
            if number % TABLE_EVERY:
                ledger, tp = self.killed, TopicPartition("killed", number % self._partitions)
                delivery = self._producer.send("killed", value(number), partition=tp.partition)
            else:
                ledger, tp = self.table, TopicPartition("table", 0)
                delivery = self._producer.send("table", value(number), key=b"%d" % (number % KEYS), partition=0)
            sent.append((ledger, tp, number, delivery))
        self._producer.flush()
        for ledger, tp, number, delivery in sent:
            ledger.note(tp, delivery.result().offset, number)

    def _write_transaction(self, count: int) -> None:
        """What becomes of one whose end is not answered is not known: its records may be there or not."""
        aborts = self._number // (4 * self._per_transaction) % 2 == 1
        sent: list[tuple[TopicPartition, int, Delivery]] = []
        try:
            self._transactional.begin_transaction()
            for number in (self._next() for _ in range(count)):
                tp = TopicPartition("killed", number % self._partitions)
                sent.append((tp, number, self._transactional.send("killed", value(number), partition=tp.partition)))
            self._transactional.flush()
            if aborts:
                self._transactional.abort_transaction()
            else:
                self._transactional.commit_transaction()
        except KafkaError:
            self.ended["unknown"] += 1
            with contextlib.suppress(MoldauError):
                self._transactional.close()
            self._transactional = self._transactional_producer()
            return
        self.ended["aborted" if aborts else "committed"] += 1
        for tp, number, delivery in () if aborts else sent:
            self.killed.note(tp, delivery.result().offset, number)

    def _transactional_producer(self) -> Producer:
        return Producer(self._address, transactional_id="mirrored", compression_type="lz4", linger_ms=5)


class Reading:
    """A member of the group, between `with` and its end: `seen` has the numbers of records that it read."""

    def __init__(self, address: str):
        self.seen: set[int] = set()
        self._address = address
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.failure: BaseException | None = None

    def __enter__(self) -> "Reading":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _read(self) -> None:
        try:
            with Consumer(
                self._address,
                group_id=GROUP,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer:
                consumer.subscribe(["killed"])
                while not self._over.is_set():
                    with contextlib.suppress(KafkaError):  # a broker is away: what was not committed comes again
                        records = consumer.poll(200)
                        self.seen.update(int(bytes(one.value or b"").split()[1]) for one in records)
                        if records:
                            consumer.commit()
        except BaseException as failure:
            self.failure = failure
