"""One partition's replica on this broker: its log, what its leader knows, and the requests that wait for it.

`append` takes a checked batch of a client (`client_appends`) or of a coordinator (`own_appends`): append it (log), move
the high watermark to what is committed (leadership), wake the requests that wait. A write with acks=all is answered
once the batch is `acknowledged`. `read` is the one place that decides which offsets a reader may see. All of that runs
on the loop, except the flush that `flush.messages` asks for.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from typing import Final, TypeAlias

from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError
from moldau.log.appended import Appended
from moldau.log.log import Log
from moldau.log.traffic import Traffic
from moldau.names import INTERNAL_TOPICS, BrokerId, Offset, TopicPartition
from moldau.notices import Notices
from moldau.records.validation import Checked
from moldau.replication.in_sync import NEVER_MS
from moldau.replication.leadership import IsrProposal, Leadership, PartitionRoles
from moldau.replication.results import ReadResult
from moldau.replication.topic_rules import KEEPS_CODEC, rules_of
from moldau.replication.waiting import Waiters
from moldau.runtime import Runtime
from moldau.tasks import to_its_end

notices = Notices(logging.getLogger(__name__))

FLUSH_NEVER = 2**63 - 1
"""`flush.messages`: leave flushing to the operating system."""
Unready: TypeAlias = tuple[ErrorCode | None, ErrorCode | None]
"""Why a replica takes no batch: with acks 0 or 1, and with acks=all."""
_READY: Final[Unready] = (None, None)
_NOT_LED: Final[Unready] = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER)
_TOO_FEW_IN_SYNC: Final[Unready] = (None, ErrorCode.NOT_ENOUGH_REPLICAS)
_new: Final = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost


class Replica:
    """`high_watermark`: readers see the records below it. It never goes back while this broker leads. `unready`: why it
    takes no batch now. `refuses_clients`: it takes none of clients; `flushes`, `recompresses`: as the topic's settings
    ask for, beside each batch; `may_leave_loop`: either of them, or appends are held."""

    __slots__ = (
        "_serves", "config", "cutting", "flushes", "flushing", "held", "high_watermark", "internal", "is_cut_off",
        "leadership", "log", "may_leave_loop", "recompresses", "refuses_clients", "rules", "runtime", "topic_id", "tp",
        "traffic", "unready", "waiters",
    )  # fmt: skip

    def __init__(
        self,
        tp: TopicPartition,
        topic_id: uuid.UUID,
        log: Log,
        config: TopicConfig,
        leadership: Leadership,
        high_watermark: Offset,
        runtime: Runtime,
        traffic: Traffic | None = None,
    ):
        """`traffic`: that of the topic, shared by its replicas here."""
        self.tp = tp
        self.traffic = traffic or Traffic()
        self.internal = tp.topic in INTERNAL_TOPICS
        self.topic_id = topic_id
        self.log = log
        self.leadership = leadership
        self.high_watermark = high_watermark
        self.waiters = Waiters()
        self.is_cut_off = False
        """This replica leads by what it knows, but another one may have been elected (see `cut_off`)."""
        self.cutting: asyncio.Task[None] | None = None
        """The truncation of the log that is under way, on a follower; roles change after it."""
        self.flushing: asyncio.Task[None] | None = None
        """The flush that `flush.messages` asks for, on a follower; roles change after it."""
        self.held: asyncio.Event | None = None
        """While the log is replaced by its copy in another log folder: nothing is appended before this is set."""
        self.runtime = runtime
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        """Take new topic settings; what is appended from now on follows them."""
        self.config = config
        self.rules = rules_of(config, self.tp)
        self.refuses_clients = self.internal or self.mirrors
        self.recompresses = config.compression_type != KEEPS_CODEC
        self.log.config = config
        self.flushes = config.flush_messages < FLUSH_NEVER
        self.may_leave_loop = self.flushes or self.recompresses or self.held is not None
        self.leadership.require(config.min_insync_replicas)
        self._note_readiness()
        # A lower `min.insync.replicas` may commit what has waited for more in-sync replicas.
        if self.leadership.leads:
            self._committed(self.leadership.committed(), None)

    @property
    def mirrors(self) -> bool:
        """Whether the topic is a mirror of another cluster's, to which no client writes."""
        return bool(self.config.mirror_source)

    def hold(self) -> None:
        """Let appends wait until `release`. Reads go on."""
        self.held, self.may_leave_loop = asyncio.Event(), True

    def release(self) -> None:
        held, self.held = self.held, None
        self.may_leave_loop = self.flushes or self.recompresses
        if held is not None:
            held.set()

    async def until_free(self) -> None:
        """Returns when nothing holds appends up any more, in the same turn of the loop."""
        while self.held is not None:
            await self.held.wait()

    def _note_readiness(self) -> None:
        """Note whether this replica takes batches now: it changes with the leadership and the settings only."""
        self.unready = _READY
        self._serves = self.leadership.leads and not self.is_cut_off
        if not self._serves:
            self.unready = _NOT_LED
        elif self.leadership.has_too_few_in_sync:
            self.unready = _TOO_FEW_IN_SYNC

    def cut_off(self, is_cut_off: bool) -> bool:
        """Refuse the reads and writes of clients, or serve them again: while this leader is cut off from the cluster,
        another one may have been elected. Followers are served meanwhile. Returns whether that is news."""
        if is_cut_off == self.is_cut_off:
            return False
        self.is_cut_off = is_cut_off
        self._note_readiness()
        self.waiters.wake()
        return True

    def followers_silent_ms(self, now_ms: int) -> int:
        """The longest time, at most, since a replica that can be elected asked for records in this leader epoch. Very
        long before each has asked three times, and if no other replica can be elected."""
        epoch, unclean = self.leadership.leader_epoch, self.config.unclean_leader_election_enable
        others = self.leadership.successors(unclean)
        asked_ms = {one.broker: one.asked_ms for one in self.waiters.followers if one.leader_epoch == epoch}
        return now_ms - min((asked_ms.get(one, NEVER_MS) for one in others), default=NEVER_MS)

    def take_roles(self, roles: PartitionRoles, now_ms: int) -> None:
        """Apply the leader, epochs and ISR that the cluster decided. `now_ms`: of a clock that never jumps."""
        leadership = self.leadership
        before, in_sync = (leadership.leader, leadership.leader_epoch), len(leadership.isr)
        if not leadership.take(roles, self.log.log_end_offset, now_ms):
            return
        if leadership.leads and (roles.leader, roles.leader_epoch) == before:
            self.traffic.isr_shrinks += len(roles.isr) < in_sync
            self.traffic.isr_expands += len(roles.isr) > in_sync
        # Parked requests wait for what happens in their leader epoch, and a leader is cut off in its own one only.
        if (roles.leader, roles.leader_epoch) != before:
            self.is_cut_off = False
            self.waiters.wake()
        self._note_readiness()
        # Without the member that held the high watermark back, more may be committed.
        if leadership.leads:
            self._committed(leadership.committed(), None)

    def follower_asked(
        self, follower: BrokerId, offset: Offset, broker_epoch: int, may_join: bool, now_ms: int
    ) -> bool:
        """A follower has all of this log below `offset`; see `Leadership.asked`. False if that must not count."""
        counts = self.leadership.asked(follower, offset, broker_epoch, may_join, self.log.log_end_offset, now_ms)
        if counts:
            self._committed(self.leadership.committed(), None)
        return counts

    def asks_no_more(self, follower: BrokerId) -> None:
        """A follower has ceased to ask; see `Leadership.asks_no_more`."""
        if self.leadership.asks_no_more(follower):
            self._committed(self.leadership.committed(), None)

    def follower_diverged(self, follower: BrokerId) -> None:
        """The log of a follower that asked is not a beginning of this one; see `Leadership.diverged`."""
        self.leadership.diverged(follower)
        self._committed(self.leadership.committed(), None)

    def follower_starts_at(self, follower: BrokerId, log_start: Offset) -> None:
        """The log of a follower that asked begins at this offset."""
        if self.leadership.starts_at(follower, log_start):
            self.waiters.deleted()

    def low_watermark(self, alive: Mapping[int, int]) -> Offset:
        """See `Leadership.low_watermark`. Raises `KafkaError` (NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR)."""
        self._check_serves()
        return self.leadership.low_watermark(self.log.log_start_offset, alive)

    def _check_serves(self) -> None:
        if not self._serves:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.log.serving.check()

    def look(self, alive: Mapping[int, int], now_ms: int) -> None:
        """Time has passed; see `Leadership.look`."""
        if self.leadership.leads:
            self.leadership.look(alive, now_ms)
            self._committed(self.leadership.committed(), None)
            self.waiters.deleted()

    def isr_refused(self, proposal: IsrProposal, now_ms: int) -> None:
        """The controller has refused another ISR."""
        self.traffic.isr_refused += 1
        if self.leadership.leads:
            self.leadership.refused(proposal, now_ms)
            self._committed(self.leadership.committed(), None)

    def follow_watermark(self, leaders: Offset) -> None:
        """Take the leader's high watermark, as far as this follower has the log."""
        self._committed(min(leaders, self.log.log_end_offset), None)

    def truncated(self) -> None:
        """The log has lost its end, or has begun anew: the high watermark is within it."""
        self.high_watermark = max(min(self.high_watermark, self.log.log_end_offset), self.log.log_start_offset)
        self.waiters.wake()

    def _reached(self, log_end: Offset, size: int | None = None) -> bool:
        """This replica's log now ends at `log_end`, `size` bytes further. True if the high watermark moved."""
        leadership = self.leadership
        # Everything is committed once it is in the log: nobody else's end has to be compared.
        if leadership.alone:
            leadership.own_end = log_end
            return self._committed(log_end, size)
        # A follower holds the high watermark back, or nothing may be committed: this replica's end changes nothing.
        if self.high_watermark < leadership.own_end:
            leadership.own_end = log_end
            return False
        return self._committed(leadership.reached(log_end), size)

    def _committed(self, offset: Offset, size: int | None) -> bool:
        """Move the high watermark to this offset, and wake the requests that wait for it or bytes. True if it moved."""
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        waiters = self.waiters
        if waiters.for_bytes or waiters.until_committed or waiters.followers:
            waiters.moved(size, offset)
        return True

    def leave(self) -> None:
        """This broker no longer hosts the partition: wake its parked requests, and refuse every further write. The log
        stays as it is: the topic may be back."""
        self.leadership.resign()
        self._note_readiness()
        self.waiters.wake()

    @property
    def log_start_offset(self) -> Offset:
        return self.log.log_start_offset

    @property
    def last_stable_offset(self) -> Offset:
        """Every offset below it is committed, and its transaction, if any, has ended."""
        return self.log.committed.last_stable_offset(self.high_watermark)

    def acknowledged(self, appended: Appended) -> ErrorCode | None:
        """The answer to a batch that was appended with acks=all, once the in-sync replicas have its last offset; None
        as long as they have not. A leader that is cut off does not wait for them: another one may take the batch."""
        # In another epoch the offset may be another batch's, so the high watermark says nothing about this one.
        if not self.leadership.leads or self.leadership.leader_epoch != appended.leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark <= appended.last_offset:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if self.is_cut_off else None
        _, too_few_in_sync = self.unready
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if too_few_in_sync else ErrorCode.NONE

    def knows_newer_epoch(self, producer_id: int, epoch: int) -> bool:
        """Whether the partition has a batch or marker of this producer with a larger epoch."""
        producer = self.log.producers.get(producer_id)
        return producer is not None and epoch < producer.epoch

    @property
    def under_way(self) -> list[asyncio.Task[None]]:
        """The tasks that a change of roles waits for."""
        return [task for task in (self.cutting, self.flushing) if task is not None]

    @property
    def is_flush_due(self) -> bool:
        return self.flushes and self.log.unflushed_records >= self.config.flush_messages

    async def flush_if_due(self, size: int) -> None:
        """After `size` bytes were appended: flush if `flush.messages` asks for it, and only then let readers see them.
        Raises `KafkaError(KAFKA_STORAGE_ERROR)`."""
        if self.is_flush_due:
            await self.flush(size)

    def begin_flush(self) -> asyncio.Task[None]:
        """As a follower: flush the log, which `flushing` is until then. A failure is named, and leaves the flush
        due."""

        async def flushed() -> None:
            try:
                await self.runtime.run(self.log.flush)
            except KafkaError as failed:
                notices.error(str(self.tp), "%s cannot be flushed: %s", self.tp, failed)
            finally:
                self.flushing = None

        self.flushing = asyncio.ensure_future(flushed())
        return self.flushing

    async def flush(self, size: int | None = None) -> bool:
        """Flush the log, and let readers see what was flushed, also if the client that waits for it goes away
        meanwhile. True if the high watermark moved. Raises `KafkaError(KAFKA_STORAGE_ERROR)`."""
        return await to_its_end(self._flush(size))

    async def _flush(self, size: int | None) -> bool:
        log = self.log
        try:
            await self.runtime.run(log.flush)
        except KafkaError:
            if log is self.log:
                raise
            await self.runtime.run(self.log.flush)  # the log has moved to another log folder meanwhile
        leadership = self.leadership
        end = max(leadership.own_end, Offset(self.log.recovery_point))  # perhaps more was appended meanwhile
        return leadership.leads and self._reached(end, size)

    def append(self, records: memoryview, checked: Checked, now_ms: int) -> Appended:
        """Append a checked batch, move the watermark, wake who waits. Raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
        appended = self.log.append(records, checked, self.leadership.leader_epoch, now_ms)
        if not appended.error:
            traffic = self.traffic
            traffic.bytes_in += checked.size
            traffic.records_in += appended[1] - appended[0] + 1
            # Followers fetch beyond the high watermark, so they are woken by the append itself.
            if self.waiters.followers:
                self.waiters.grew()
            # If a flush is due, the batch is committed after it (`flush_if_due`).
            if not (self.flushes and self.is_flush_due):
                self._reached(self.log.log_end_offset, checked.size)
        return appended

    def takes_own(self) -> None:
        """Raise `KafkaError` (NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS) if a coordinator's batch is refused, as one
        with acks=all is."""
        _, unready = self.unready
        if unready is not None:
            raise KafkaError(unready)

    async def appended_marker(self) -> None:
        """A marker, or what a mirror's source has, was appended: flush it if `flush.messages` asks for that, and wake
        the readers that the open records of its transaction held back, once it is committed. Raises
        `KafkaError(KAFKA_STORAGE_ERROR)`."""
        self.waiters.grew()
        if self.is_flush_due:
            has_moved = await self.flush()
        else:
            has_moved = self.leadership.leads and self._reached(self.log.log_end_offset)
        # The records of a transaction were appended before: their bytes wake no reader of committed records.
        if has_moved:
            self.log.producers.settle(self.high_watermark)
            self.waiters.wake()

    def read(
        self,
        offset: int,
        max_bytes: int,
        committed: bool,
        min_one: bool = True,
        leader_epoch: int = -1,
        anywhere: bool = False,
    ) -> ReadResult:
        """Records from the batch that holds `offset` up to the last one this reader may see, with the partition's
        offsets at the same moment. `max_bytes` and `min_one` are those of `Log.read`; `committed`: the isolation level
        is read_committed; `leader_epoch`: the reader's, see `leadership_error`; `anywhere`: followers answer, too.

        Raises `KafkaError`: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE, errors of leadership.
        """
        if leader_epoch >= 0 or not self._serves:
            error = self.reader_error(leader_epoch, anywhere)
            if error is not None:
                raise KafkaError(error)
        log, watermark = self.log, self.high_watermark
        # Without an open transaction the last stable offset is the high watermark.
        stable = log.committed.last_stable_offset(watermark) if log.producers.unsettled else watermark
        records = log.read(offset, max_bytes, stable if committed else watermark, min_one)
        aborted: list[tuple[int, int]] | None = None
        if committed:
            aborted = []
            if log.committed.has_aborted:
                aborted = [(one.producer_id, one.first_offset) for one in log.committed.aborted_in(offset, records)]
        return _new(ReadResult, (watermark, stable, log.log_start_offset, aborted, records))

    def reader_error(self, leader_epoch: int, anywhere: bool = False) -> ErrorCode | None:
        """`leadership_error` for a client's question, which a leader that is cut off does not answer; `anywhere`: a
        follower does."""
        # A follower whose log is being truncated has records that its leader does not have: it answers nobody.
        if self._serves or (anywhere and not self.leadership.leads and self.cutting is None):
            return self._epoch_error(leader_epoch)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def end(self, committed: bool) -> Offset:
        """The first offset that this reader may not see yet. `committed`: the isolation level is read_committed."""
        return self.last_stable_offset if committed else self.high_watermark

    def delete_records_before(self, offset: int) -> Offset:
        """Move the start of the log that this broker leads forward to `offset`, and let its followers know at once;
        returns where it is now. Raises `KafkaError`: OFFSET_OUT_OF_RANGE above the high watermark,
        NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR."""
        self._check_serves()
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        start = self.log.delete_records_before(offset)
        self.waiters.grew()
        return start

    def leadership_error(self, current_leader_epoch: int) -> ErrorCode | None:
        """The error for a request that has this leader epoch (-1: none), per KIP-320; None if this broker leads and the
        epoch is current or absent."""
        return self._epoch_error(current_leader_epoch) if self.leadership.leads else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _epoch_error(self, current_leader_epoch: int) -> ErrorCode | None:
        if current_leader_epoch < 0 or current_leader_epoch == self.leadership.leader_epoch:
            return None
        # Either the one who asks is behind, and must refresh its metadata, or this broker is: then a retry helps.
        if current_leader_epoch < self.leadership.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH
