"""The producer's sender: takes due batches, sends them to the leaders, and completes them when the replies arrive.

The sender is one task on one loop. `_pump` decides and sends without awaiting. Connecting, refreshing metadata and
requesting a producer id run as separate tasks that wake the pump when they finish, so that one slow broker does not
delay the others.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from moldau.client.failures import STALE_METADATA, Backoff, error_of, own_fault, sentence
from moldau.client.producing.auditing import ProducerAudit
from moldau.client.producing.batch import Ack, Batch, ProducerIdAndEpoch
from moldau.client.producing.batching import Accumulator
from moldau.client.producing.delivery import Unseen, tell
from moldau.client.producing.gone_partitions import GonePartitions
from moldau.client.producing.partition_queue import PartitionQueue
from moldau.client.producing.producer_metrics import Counters
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.client.producing.transacting import ProducerTransactions
from moldau.client.routing import SLOW_DIAL_S, Router
from moldau.errors import ErrorCode, KafkaError, MoldauError, ProtocolViolation
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition
from moldau.peers.link import Link
from moldau.protocol.apis import INIT_PRODUCER_ID, PRODUCE
from moldau.protocol.codec import read_reply
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.protocol.primitives import Detached
from moldau.records.batch import TRANSACTIONAL_BIT
from moldau.records.compression import CODECS
from moldau.tasks import ended

logger = logging.getLogger(__name__)

AFTER_FAULT_S = 0.1
"""The pause after a fault of the producer's own: one that lasts must not keep the loop busy."""
LOST_BATCHES = "%s: the log of %s has lost records that were acknowledged; the producer goes on with those behind them"
TakenBatches = dict[TopicPartition, tuple[PartitionQueue, Batch]]


class Sender:
    """Sends the batches of an `Accumulator`. Call `start` on the loop of its router."""

    def __init__(
        self,
        router: Router,
        accumulator: Accumulator,
        settings: ProducerSettings,
        unseen: Unseen,
        transactions: ProducerTransactions | None = None,
        audit: ProducerAudit | None = None,
    ):
        self._router = router
        self._accumulator = accumulator
        self._settings = settings
        self._acks = settings.acks_number
        self._idempotent = settings.is_idempotent
        self._codec = CODECS[settings.compression_type]
        self.counters = Counters()
        self._unseen = unseen
        self._transactions = transactions
        self._audit = audit
        self._identity: ProducerIdAndEpoch | None = None
        self._links: dict[int, Link] = {}
        self._waiting_for: dict[str, asyncio.Task[None]] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._gone = GonePartitions()
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self.on_end: Callable[[], object] = lambda: None
        """Called if the task of the sender is cancelled: no record that comes later would be sent."""
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        self._task = self._loop.create_task(self._run())

    def wake(self) -> None:
        """Check again for due batches. Call on the loop only."""
        self._awake.set()

    async def close(self) -> None:
        """Stop; batches that are not acknowledged fail."""
        self._closing = True
        await ended(self._task, *self._waiting_for.values())
        closed = "the producer was closed before the broker acknowledged the record"
        self._fail_all(KafkaError(ErrorCode.NETWORK_EXCEPTION, closed))

    def _fail_all(self, failure: KafkaError) -> None:
        for tp, batch in self._accumulator.unacknowledged():
            self._settle(tp, batch, failure)

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._send_until_closed()
                except Exception as fault:
                    self._fail_all(own_fault(f"{self._router.client_id}: the producer", fault))
                    with self._accumulator.lock:
                        self._accumulator.queues.clear()
                    self._identity = None  # the sequences of its batches are lost
                await asyncio.sleep(AFTER_FAULT_S)
        except asyncio.CancelledError:
            if not self._closing:
                self._loop_ends()
            raise

    def _loop_ends(self) -> None:
        """The loop ends, or somebody has cancelled all of its tasks. Fail what nobody will deliver any more: its caller
        may wait for it on another loop."""
        self.on_end()
        left = self._accumulator.records
        if left:
            line = "%s: the event loop ended with %d records that are not delivered: use the producer in async with"
            logger.warning(line, self._router.client_id, left)
            ended = "the event loop of the producer ended, or its task was cancelled, before the record was delivered"
            self._fail_all(KafkaError(ErrorCode.NETWORK_EXCEPTION, ended))
        self._router.abandon()

    async def _send_until_closed(self) -> None:
        while True:
            self._awake.clear()
            due_s = self._pump(self._loop.time())
            timeout_s = 1.0 if due_s is None else max(due_s - self._loop.time(), 0.0)
            try:
                async with asyncio.timeout(min(timeout_s, 1.0)):
                    await self._awake.wait()
            except TimeoutError:
                pass

    def _pump(self, now_s: float) -> float | None:
        """Send all due batches. Returns the time when the next batch is due, None if unknown."""
        for queue, batch in self._accumulator.expired(now_s):
            queue.gave_up(batch)
            about = f"{queue.tp}: not acknowledged within the delivery time-out after {batch.attempts} attempts"
            latest = self._router.retries.latest
            why = f"; the last failure: {latest}" if latest else ""
            self._settle(queue.tp, batch, KafkaError(ErrorCode.REQUEST_TIMED_OUT, about + why))
        while True:
            sent, earliest = self._round(now_s)
            if not sent:
                return earliest

    def _round(self, now_s: float) -> tuple[bool, float | None]:
        """Send at most one request to each leader. Returns whether one was sent, and when the next batch is due."""
        earliest: float | None = None
        by_leader: dict[int, list[PartitionQueue]] = {}
        unled: dict[str, None] = {}
        unknown: list[TopicPartition] = []
        with self._accumulator.lock:
            hurry = self._accumulator.pressing
            queues = list(self._accumulator.queues.values())
        for queue in queues:
            due_s = queue.due_s(now_s, hurry, self._idempotent)
            if due_s is None:
                continue
            if due_s > now_s:
                earliest = due_s if earliest is None else min(earliest, due_s)
                continue
            if self._transactions is not None and not self._transactions.covers(queue.tp):
                unknown.append(queue.tp)
                continue
            leader = self._router.view.leader(queue.tp)
            if isinstance(leader, ErrorCode):
                unled[queue.tp.topic] = None
            else:
                by_leader.setdefault(leader, []).append(queue)
        if unled:
            self._background("refreshing metadata", lambda: self._ask_who_leads(list(unled)))
        if unknown and self._transactions is not None:
            add = self._transactions.add
            self._background("adding partitions to the transaction", lambda: add(unknown))
        if by_leader and self._idempotent and self._producer is None:
            self._background("requesting a producer id", self._introduce)
            return False, earliest
        sent = [self._send_to(leader, ready) for leader, ready in by_leader.items()]
        return any(sent), earliest

    def _send_to(self, leader: int, ready: list[PartitionQueue]) -> bool:
        link = self._links.get(leader)
        if link is None or link.closed:
            self._background(f"connecting to broker {leader}", lambda: self._connect(leader))
            return False
        limit = self._settings.max_in_flight_requests_per_connection
        if link.connection.in_flight >= limit or not link.connection.writable:
            return False
        taken: TakenBatches = {}
        size = 0
        with self._accumulator.lock:
            for queue in ready:
                batch = self._accumulator.take(queue, self._producer)
                taken[queue.tp] = queue, batch
                size += batch.size
                if size >= self._settings.max_request_size:
                    break
        try:
            self._post(link, taken)
        except MoldauError as refused:
            self._failed(taken, refused)
        return True

    def _post(self, link: Link, taken: TakenBatches) -> None:
        topics: dict[str, list[tuple[int, bytearray]]] = {}
        attributes = TRANSACTIONAL_BIT if self._transactions is not None else 0
        for tp, (_, batch) in taken.items():
            topics.setdefault(tp.topic, []).append((tp.partition, batch.bytes_to_send(self._codec, attributes)))
        topic_data, records = [], []
        for name, parts in topics.items():
            topic_data.append(TopicProduceData(name=name))
            for partition, data in parts:
                place = Detached(len(data))
                records.append((place, memoryview(data)))
                topic_data[-1].partition_data.append(PartitionProduceData(index=partition, records=place))
        timeout_ms = self._router.request_timeout_ms
        request = ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._acks,
            timeout_ms=timeout_ms,
            topic_data=topic_data,
        )
        self.counters.requests += 1
        if self._acks == 0:
            link.post_unanswered(PRODUCE, request, records)
            for queue, batch in taken.values():
                queue.acknowledged(batch)
                self._settle(queue.tp, batch, Ack(-1, -1))
            return
        version = link.versions.of(PRODUCE)
        sent_s = monotonic_s()  # uvloop's clock counts whole milliseconds
        reply = link.post(PRODUCE, request, timeout_ms, around=records)
        reply.add_done_callback(lambda reply: self._replied(reply, version, link, taken, sent_s))

    def _replied(
        self, reply: asyncio.Future[memoryview], version: int, link: Link, taken: TakenBatches, sent_s: float
    ) -> None:
        try:
            response: ProduceResponse = read_reply(PRODUCE, version, reply.result())
        except ProtocolViolation as violation:
            link.connection.close()
            self._failed(
                taken, KafkaError(ErrorCode.NETWORK_EXCEPTION, f"a broker sent an invalid Produce reply: {violation}")
            )
        except KafkaError as failure:
            self._failed(taken, failure)
        else:
            link.heed(response)
            self.counters.replied(monotonic_s() - sent_s)
            results = {TopicPartition(t.name, p.index): p for t in response.responses for p in t.partition_responses}
            for tp, (queue, batch) in taken.items():
                self._result(queue, batch, results.get(tp))
        self._awake.set()

    def _result(self, queue: PartitionQueue, batch: Batch, result: PartitionProduceResponse | None) -> None:
        error = ErrorCode.NETWORK_EXCEPTION if result is None else error_of(result.error_code)
        if result is not None and error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            if self._backoffs:
                self._backoffs.pop(str(queue.tp), None)
            queue.acknowledged(batch)
            self._settle(queue.tp, batch, Ack(result.base_offset, result.log_append_time_ms))
            return
        details = result.error_message if result is not None and result.error_message else sentence(error)
        self._fail(queue, batch, KafkaError(error, f"{queue.tp}: {details}"))

    def _failed(self, taken: TakenBatches, failure: MoldauError) -> None:
        for queue, batch in taken.values():
            self._fail(queue, batch, failure)

    def _fail(self, queue: PartitionQueue, batch: Batch, failure: MoldauError) -> None:
        """Handle a failed attempt: split the batch, send it again (perhaps in a new epoch), or fail it for good."""
        code = failure.code if isinstance(failure, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        if code in STALE_METADATA:
            self._router.stale(queue.tp.topic)
        backoff = self._backoff(str(queue.tp))
        may_retry = batch.attempts <= self._settings.retries
        if self._transactions is not None and self._transactions.giving_up:
            may_retry = False
        with self._accumulator.lock:
            parts = queue.split(batch, code)
            if parts is not None:
                batch.outcome.set_result(parts)
                return
            is_first = not queue.again  # batches that fail together wait once
            wait_ms = backoff.next_ms() if is_first else 0
            not_before_s = self._loop.time() + wait_ms / 1000 if is_first else queue.not_before_s
            renewed = queue.renew
            again = queue.failed(batch, code, not_before_s, may_retry)
            if queue.renew and not renewed and queue.has_lost(code):
                logger.warning(LOST_BATCHES, self._router.client_id, queue.tp)
            if queue.renew and queue.exhausted:
                self._identity = None
        if again:
            self.counters.records_retried += batch.count
            if is_first:
                backoff.say(failure, wait_ms)
        else:
            self._settle(queue.tp, batch, failure)

    @property
    def _producer(self) -> ProducerIdAndEpoch | None:
        return self._identity if self._transactions is None else self._transactions.identity

    def _settle(self, tp: TopicPartition, batch: Batch, outcome: Ack | MoldauError) -> None:
        if batch.outcome.done():
            return
        batch.seal()
        self._accumulator.release(batch)
        if isinstance(outcome, Ack):
            self.counters.records_delivered += batch.count
            self.counters.batches_delivered += 1
            self.counters.bytes_delivered += len(batch.encoded or b"")
            if self._audit is not None:
                self._audit.delivered(tp, batch, outcome)
            if batch.reusable and batch.encoded is not None and self._acks != 0:
                self._accumulator.reuse(batch.encoded)
            batch.outcome.set_result(outcome)
        else:
            self.counters.records_failed += batch.count
            self._unseen.add(batch, outcome)
            if self._transactions is not None:
                self._transactions.batch_failed(outcome)
            batch.outcome.set_exception(outcome)
        batch.encoded, batch.records = None, bytearray()  # a caller may keep the delivery for long
        if batch.callbacks:
            tell(batch, outcome)

    def _backoff(self, about: str) -> Backoff:
        """The waits between attempts at the named action; kept until the action succeeds."""
        if about not in self._backoffs:
            self._backoffs[about] = self._router.backoff(about)
        return self._backoffs[about]

    def _background(self, name: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Run a coroutine as a task, one at a time for each name; the pump runs again when it ends."""
        if name not in self._waiting_for:
            self._waiting_for[name] = self._loop.create_task(self._guarded(name, work))

    async def _guarded(self, name: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await work()
            self._backoffs.pop(name, None)
        except KafkaError as failure:
            backoff = self._backoff(name)
            wait_ms = backoff.next_ms()
            if failure.retriable:
                backoff.say(failure, wait_ms)
            else:
                self.give_up(failure)
            await asyncio.sleep(wait_ms / 1000)
        except Exception as fault:
            self.give_up(own_fault(f"{self._router.client_id}: the producer, {name},", fault))
            await asyncio.sleep(AFTER_FAULT_S)
        finally:
            del self._waiting_for[name]
            self._awake.set()

    def give_up(self, failure: KafkaError, topic: str | None = None, partition: int | None = None) -> None:
        """Fail all waiting batches, or those of one topic or partition: the broker has refused the producer id, the
        version or the topic for good, the partition is gone, or the transaction is aborted."""
        hopeless: list[tuple[TopicPartition, Batch]] = []
        with self._accumulator.lock:
            for queue in self._accumulator.queues.values():
                if topic in (None, queue.tp.topic) and partition in (None, queue.tp.partition):
                    hopeless += [(queue.tp, batch) for batch in (*queue.again, *queue.waiting)]
                    for batch in queue.again:
                        queue.gave_up(batch)
                    queue.again.clear()
                    queue.waiting.clear()
        for tp, batch in hopeless:
            self._settle(tp, batch, failure)

    async def _ask_who_leads(self, topics: list[str]) -> None:
        """Refresh the metadata. Batches of a refused topic and of a partition that is gone fail. Raises `KafkaError` if
        others wait for a partition that has no leader: they are retried after a wait."""
        await self._router.refresh(topics, create=True)
        view, unled = self._router.view, None
        for tp in self._accumulator.waited_for(topics):
            leader = view.leader(tp)
            if not isinstance(leader, ErrorCode):
                continue
            why = view.missing.get(tp.topic)
            if why is not None and not why.retriable:
                self.give_up(KafkaError(why, f"topic {tp.topic}: {sentence(why)}"), tp.topic)
            elif gone := self._gone.failure(tp, view, self._loop.time()):
                self.give_up(gone, *tp)
            else:
                unled = KafkaError(leader, f"{tp if why is None else f'topic {tp.topic}'}: {sentence(leader)}")
        if unled is not None:
            raise unled

    async def _connect(self, leader: int) -> None:
        dialling = self._loop.create_task(self._router.broker(leader))
        try:
            while not (await asyncio.wait([dialling], timeout=SLOW_DIAL_S))[0]:
                # The host is silent, and its time-out may be far away: another broker may lead by now.
                self._router.view.topics.clear()
                self._awake.set()
            self._links[leader] = dialling.result()
        except KafkaError:
            self._links.pop(leader, None)
            self._router.view.topics.clear()
            raise
        finally:
            await ended(dialling)

    async def _introduce(self) -> None:
        link = await self._router.any()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        reply = await link.call(INIT_PRODUCER_ID, request, self._router.request_timeout_ms)
        if reply.error_code:
            error = error_of(reply.error_code)
            raise KafkaError(error, f"the broker assigned no producer id: {sentence(error)}")
        self._identity = ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)
