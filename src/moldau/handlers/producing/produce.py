"""Produce (key 0), versions 3 to 13: append batches, answer for each partition where they are.

Kafka's behaviour: versions 0 to 2 are advertised and close the connection; acks=0 has no reply, and an error there
closes the connection, the only sign that the client can get; acks=all answers when the in-sync replicas have the batch,
and `min.insync.replicas` is checked before appending. From version 8 an error may have a sentence and name records
(null keys and timestamps only; the sentence also where a partition was not added to a transaction), from version 13 a
topic is named by its id. Zstd needs version 7. A client needs WRITE on a topic, and on its transactional id.

A request is answered in three steps. The plan decides for each partition whether its batch is refused, how it is
appended, and whether it begins a transaction, whose coordinator is then asked (see `transaction_verification`). The
batches are appended in the request's order. The outcomes of the batches become the answer; with acks=all not before
the high watermark of every partition has passed its batch, or `timeout_ms` is over.

A request that needs only the loop is answered, or `Pending`, without awaiting. While one is pending, the Produces
behind it on its connection are appended (`acknowledging`). If one of its batches is heavy (D14), or a log wants its
flush before the answer, the record sets are copied and the request goes on in a task, in the same order; its connection
is muted until they are appended.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from moldau.errors import ErrorCode, ProtocolViolation
from moldau.handlers.denied_topics import is_denied
from moldau.handlers.producing.acknowledging import BatchBehind, PendingAnswer, has_moved, still_waiting
from moldau.handlers.producing.deadlines import TimingWheel
from moldau.handlers.producing.mistimed import Mistimed, line_of
from moldau.handlers.producing.transaction_verification import (
    ADDS_PARTITIONS,
    AppendStep,
    TransactionVerifier,
    begins_transaction,
)
from moldau.notices import Notices
from moldau.protocol.apis import PRODUCE
from moldau.protocol.hot_produce import (
    Produce,
    ProduceResult,
    ProduceTopic,
    in_own_memory,
    produce_response,
    without_records,
)
from moldau.protocol.hot_topics import WIDE
from moldau.replication.client_appends import PlannedAppend, append_off_loop, append_planned, plan_append
from moldau.replication.replicas import Replicas
from moldau.replication.results import EXPECTED, Appended, AppendOutcome, AppendRefusal, AppendTerms
from moldau.replication.waiting import Wait
from moldau.requests.access import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.requests.gate import Pending
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.turns import Steps, Turns

if TYPE_CHECKING:
    from moldau.protocol.messages.produce import ProduceResponse

notices = Notices(logging.getLogger(__name__))

ALL_IN_SYNC: Final = -1
"""acks: -1 (or "all"), 1 the leader alone, 0 no reply at all."""
ZSTD_SINCE: Final = 7
"""KIP-110: an older client could not read it back."""
DETAILS_SINCE: Final = 8
"""KIP-467: replies to older clients have error codes only."""
_new: Final = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost
APPENDS_IN_TURN: Final = 100
"""A request with more partitions is appended in several turns, once it goes on in a task."""


def _terms(transactional: bool) -> list[dict[int, AppendTerms]]:
    """Rules for a request's batches that depend on its version and acks."""
    return [
        {
            acks: AppendTerms(
                acks_all=acks == ALL_IN_SYNC,
                transactional=transactional,
                zstd=version >= ZSTD_SINCE,
                transaction_version=2 if version >= ADDS_PARTITIONS else 0,
            )
            for acks in (ALL_IN_SYNC, 0, 1)
        }
        for version in range(PRODUCE.high + 1)
    ]


_TERMS: Final = _terms(transactional=False)
_TRANSACTIONAL_TERMS: Final = _terms(transactional=True)

ProduceAnswer: TypeAlias = "list[ProduceResult] | ProduceResponse | Pending | None"
"""The results of all partitions, in the request's order; a message if one has more to say; None for acks=0; `Pending`
until the in-sync replicas have all batches."""


WriteCheck: TypeAlias = Callable[[str | None, bytes | None], ErrorCode | None]
"""The error of a client that may not write to a topic, given by name or id; None if it may."""


class ProduceResults(NamedTuple):
    """What became of the batches of a request: their results, the refusals with a sentence by their place among them,
    and those that the in-sync replicas do not have yet."""

    results: list[ProduceResult]
    details: Mapping[int, AppendRefusal] | None
    behind: list[BatchBehind] | None


class ProduceHandler:
    def __init__(self, replicas: Replicas, runtime: Runtime, verifier: TransactionVerifier, turns: Turns):
        self._replicas = replicas
        self._verifier = verifier
        self._turns = turns
        self._deadlines = TimingWheel()
        self._mistimed = Mistimed()
        self._now_ms: Callable[[], int] = runtime.clock.now_ms

    def __call__(
        self, request: Produce, call: Call
    ) -> "ProduceAnswer | Awaitable[ProduceAnswer] | Steps[Awaitable[ProduceAnswer]]":
        """Raises `ProtocolViolation` for a refused request with acks=0."""
        transactional_id, _, _, topics, is_wide = request
        now_ms = self._now_ms()
        session = call.session
        writable = None if session.authorizer is None else session.writable if transactional_id is None else ()
        if is_wide:
            return self._plan_wide(request, call, now_ms, writable)
        plan = self._plan(request, call, topics, now_ms, writable)
        outcomes: list[AppendOutcome] = []
        if (transactional_id is None or not begins_transaction(plan)) and self._append(plan, outcomes, now_ms):
            return self._answered(request, call, plan, outcomes)
        own = in_own_memory(request)
        return self._complete(own, call, _over(plan, own), outcomes)

    def _refusal(self, request: Produce, call: Call) -> WriteCheck:
        """The error for each topic that this client may not write to."""
        if request.transactional_id is not None and not call.may(WRITE_TRANSACTIONAL_ID, request.transactional_id):
            return lambda name, topic_id: WRITE_TRANSACTIONAL_ID.denied
        denied = is_denied(call, WRITE_TOPIC, self._replicas)
        return lambda name, topic_id: WRITE_TOPIC.denied if denied(name, topic_id) else None

    def _plan_wide(
        self, request: Produce, call: Call, now_ms: int, writable: Container[str] | None
    ) -> Steps[Awaitable[ProduceAnswer]]:
        plan: list[AppendStep] = []
        refusal = None if writable is None else self._refusal(request, call)
        for name, topic_id, parts in request.topics:
            for part in parts:
                plan += self._plan(request, call, [(name, topic_id, [part])], now_ms, writable, refusal)
                yield
        return self._complete(request, call, plan, [])

    def _plan(
        self,
        request: Produce,
        call: Call,
        topics: Sequence[ProduceTopic],
        now_ms: int,
        writable: Container[str] | None,
        refusal: WriteCheck | None = None,
    ) -> list[AppendStep]:
        """What is to be done for each partition of these topics. `writable`: those that need no look at rights, None
        for all."""
        replicas = self._replicas
        hosted = replicas.hosted
        by_version = _TERMS if request.transactional_id is None else _TRANSACTIONAL_TERMS
        terms = by_version[call.version].get(request.acks)
        plan: list[AppendStep] = []
        for name, topic_id, parts in topics:
            topic = name if topic_id is None else replicas.names.get(topic_id)
            refused = None
            if writable is not None and topic not in writable:
                refusal = refusal or self._refusal(request, call)
                refused = refusal(name, topic_id)
            for index, records in parts:
                if refused is not None:
                    plan.append(AppendRefusal(index, refused))
                elif terms is None:
                    plan.append(AppendRefusal(index, ErrorCode.INVALID_REQUIRED_ACKS))
                elif (replica := hosted.get((topic, index))) is None:
                    plan.append(AppendRefusal(index, replicas.absence(name, topic_id, index)))
                else:
                    plan.append(plan_append(replica, records, terms, now_ms))
        return plan

    def _append(self, steps: Sequence[AppendStep], outcomes: list[AppendOutcome], now_ms: int) -> bool:
        """Append the batches of these steps, up to the first one that needs more than the loop; True if none does."""
        for step in steps:
            if not isinstance(step, PlannedAppend):
                outcomes.append(step)
            elif step.off_loop or step.replica.held is not None:
                return False
            else:
                outcomes.append(append_planned(step, now_ms))
        return True

    async def _complete(
        self, request: Produce, call: Call, plan: Sequence[AppendStep], outcomes: list[AppendOutcome]
    ) -> ProduceAnswer:
        """Go on where the loop alone could not: ask the transaction's coordinator, use the executor, work in turns.
        `outcomes`: those of the first batches of the plan."""
        if request.transactional_id is not None and not outcomes and begins_transaction(plan):
            plan = await self._verifier.verified(request.transactional_id, call.version, plan)
        while (count := len(outcomes)) < len(plan):
            step = plan[count]
            if isinstance(step, PlannedAppend) and (step.off_loop or step.replica.held is not None):
                outcomes.append(await append_off_loop(step, self._now_ms()))
            else:
                end = count - count % APPENDS_IN_TURN + APPENDS_IN_TURN
                self._append(plan[count:end], outcomes, self._now_ms())
            if not len(outcomes) % APPENDS_IN_TURN:
                await asyncio.sleep(0)
        if len(plan) <= WIDE:
            return self._answered(request, call, plan, outcomes)
        async with self._turns:
            outcome = await self._turns.off_loop(lambda: _outcome(request, plan, outcomes))
        self._tell_mistimed(call, plan, outcome)
        if outcome.behind:
            await self._acknowledged(outcome.behind, outcome.results, request.timeout_ms)
        async with self._turns:
            return await self._turns.off_loop(lambda: _answer(request, call.version, outcome))

    def _answered(
        self, request: Produce, call: Call, plan: Sequence[AppendStep], outcomes: Sequence[AppendOutcome]
    ) -> ProduceAnswer:
        """The answer to a request whose batches were appended or refused; with acks=all not before the in-sync replicas
        have them. Raises `ProtocolViolation`."""
        outcome = _outcome(request, plan, outcomes)
        results, details, behind = outcome
        if details:
            self._tell_mistimed(call, plan, outcome)
        if behind:
            own = without_records(request)
            answer = partial(_answer, own, call.version, outcome)
            return _new(Pending, (own, PendingAnswer(behind, results, request.timeout_ms, self._deadlines, answer)))
        return results if request.acks and not details else _answer(request, call.version, outcome)

    def _tell_mistimed(self, call: Call, plan: Sequence[AppendStep], outcome: ProduceResults) -> None:
        """Log the first batch that was refused for its timestamps: the client's clock is wrong, or this broker's."""
        for at, refusal in (outcome.details or {}).items():
            step = plan[at]
            if refusal.error is ErrorCode.INVALID_TIMESTAMP and refusal.timestamp_ms >= 0:
                assert isinstance(step, PlannedAppend), "no other step looks at timestamps"
                stamp, now_ms, host = refusal.timestamp_ms, self._now_ms(), call.client_host
                hosts = self._mistimed.hosts(host, stamp > now_ms, asyncio.get_running_loop().time())
                line = line_of(call.client_id, host, step.replica.tp, stamp, now_ms, hosts)
                notices.warning("ahead" if stamp > now_ms else "behind", "%s", line)
                return

    async def _acknowledged(self, behind: list[BatchBehind], results: list[ProduceResult], timeout_ms: int) -> None:
        """Wait for the batches of a wide request."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while behind := await self._turns.run(still_waiting(behind, results, loop.time() >= deadline_s)):
            offsets = [(replica.waiters, appended.last_offset + 1) for _, replica, appended in behind]
            wait = Wait.until_committed(offsets, deadline_s - loop.time(), loop)
            if has_moved(behind):  # while looking took its turns
                wait.finish()
            await wait.done


def _over(plan: Sequence[AppendStep], request: Produce) -> list[AppendStep]:
    """The plan with its record sets replaced by the copies that `request` holds."""
    copies = [records for _, _, parts in request.topics for _, records in parts]
    return [
        step._replace(records=records) if isinstance(step, PlannedAppend) and records is not None else step
        for step, records in zip(plan, copies, strict=True)
    ]


def _outcome(request: Produce, plan: Sequence[AppendStep], outcomes: Sequence[AppendOutcome]) -> ProduceResults:
    acks_all = request.acks == ALL_IN_SYNC
    results: list[ProduceResult] = []
    details: dict[int, AppendRefusal] | None = None
    behind: list[BatchBehind] | None = None
    for step, outcome in zip(plan, outcomes):  # noqa: B905 - `strict` costs more than the tuple
        if isinstance(outcome, Appended):
            base_offset, last_offset, time_ms, start, error, _, leader_epoch = outcome
            if (
                acks_all
                and not error
                and isinstance(step, PlannedAppend)
                and (
                    step.replica.high_watermark <= last_offset
                    or step.replica.leadership.leader_epoch != leader_epoch  # perhaps another leader's batch is there
                )
            ):
                behind = behind or []
                behind.append(_new(BatchBehind, (len(results), step.replica, outcome)))
            results.append((step.partition, error, base_offset, time_ms, start))
        else:
            if isinstance(step, PlannedAppend) and outcome.error not in EXPECTED:
                step.replica.traffic.failed_produces += 1
            if outcome.message is not None:
                details = details or {}
                details[len(results)] = outcome
            results.append((outcome.partition, outcome.error, -1, -1, outcome.log_start_offset))
    return _new(ProduceResults, (results, details, behind))


def _answer(request: Produce, version: int, outcome: ProduceResults) -> ProduceAnswer:
    """Raises `ProtocolViolation`."""
    results, details, _ = outcome
    if request.acks == 0:
        if any(error for _, error, *_ in results):
            raise ProtocolViolation("a Produce with acks=0 was refused; only closing the connection tells the client")
        return None
    return produce_response(request, results, details) if details and version >= DETAILS_SINCE else results
