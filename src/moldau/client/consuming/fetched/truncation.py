"""Log truncation (KIP-320): are the records that were read, up to the next one to fetch, in the log of the leader?

A new leader may lack records that a consumer has read, if an out-of-sync replica was elected. The leader epoch of the
last record tells: the leader answers where that epoch ends in its log. A position is compared once before the first
Fetch from it (a commit may be older than the election), and again whenever the partition has a new leader.
"""

import logging
import threading
from collections.abc import Iterable
from typing import NamedTuple

from moldau.client.consuming.fetched.assigned import Assigned
from moldau.client.epoch_ends import AHEAD_S_MAX, EpochEnd, epoch_ends, epoch_ends_request
from moldau.client.failures import STALE_METADATA, error_of, sentence
from moldau.client.record_epochs import batch_request, is_open, settled
from moldau.client.routing import Router
from moldau.errors import KafkaError, LogTruncated
from moldau.names import TopicPartition
from moldau.peers.link import Link
from moldau.protocol.apis import FETCH, OFFSET_FOR_LEADER_EPOCH

logger = logging.getLogger(__name__)

NO_RESET = "and auto_offset_reset is none; seek to go on"


class _Asked(NamedTuple):
    """What is compared: the next offset to fetch, the epoch of the record before it, and the leader's own epoch."""

    state: Assigned
    offset: int
    epoch: int
    leader_epoch: int


def made_anew(state: Assigned, lock: threading.Lock, resets: bool) -> LogTruncated | None:
    """The partition is one of a new topic of the same name: its position has to be found as after any offset out of
    range. The error if that needs a reset which is not allowed."""
    with lock:
        position = state.position
        if position is None:
            return None
        if position == 0:  # nothing was read; the first record of any topic is the next one
            state.start(0)
            return None
        if not resets:
            return LogTruncated(state.tp, position, None, NO_RESET, is_new_topic=True)
        logger.warning("%s was deleted and created again: its position %d is dropped", state.tp, position)
        state.lose_position(out_of_range=True)
        return None


async def compare(
    router: Router, leader: int, states: Iterable[Assigned], lock: threading.Lock, now_s: float, resets: bool
) -> None:
    """Compare what was fetched of these partitions with the log of their leader, in one request.

    After a truncation the position moves to the first lost offset; where that is unknown it has to be found as after
    any offset out of range. Raises `LogTruncated` instead unless `resets`, and `KafkaError` if the leader does not
    answer for some of them; the others are done all the same.
    """
    view, asked, wanted = router.view, dict[TopicPartition, _Asked](), dict[TopicPartition, tuple[int, int]]()
    with lock:
        for state in states:
            offset, leader_epoch = state.fetch_from, view.leader_epoch(state.tp)
            epoch = None if offset is None else state.epochs.of(offset - 1)
            if offset is not None and epoch is not None:
                asked[state.tp] = _Asked(state, offset, epoch, leader_epoch)
                is_behind = epoch > leader_epoch and not state.is_ahead_for(AHEAD_S_MAX, now_s)
                wanted[state.tp] = epoch, epoch if is_behind else leader_epoch
    if not asked:
        return
    link = await router.broker(leader)
    if not link.versions.has(OFFSET_FOR_LEADER_EPOCH):  # then nothing can be compared, as in Java's consumer
        for one in asked.values():
            one.state.leader_epoch = one.leader_epoch
        return
    reply = await link.call(OFFSET_FOR_LEADER_EPOCH, epoch_ends_request(wanted), router.request_timeout_ms)
    ends = [await _settled(router, link, asked[tp], code, end) for tp, code, end in epoch_ends(reply, asked)]
    failure: KafkaError | None = None
    with lock:
        for tp, code, end in ends:
            error = error_of(code)
            if error in STALE_METADATA:
                router.stale(tp.topic)
            judged: KafkaError | None
            if error:
                judged = KafkaError(error, f"comparing the position in {tp} with its leader: {sentence(error)}")
            else:
                judged = _judged(asked[tp], end, resets)
            failure = failure or judged
    if failure is not None:
        raise failure


async def _settled(
    router: Router, link: Link, asked: _Asked, code: int, end: EpochEnd
) -> tuple[TopicPartition, int, EpochEnd]:
    """The leader's answer; where that leaves open if it has the record, the batch in its place decides."""
    state, offset, epoch, leader_epoch = asked
    if not is_open(end, offset, epoch):
        return state.tp, code, end
    try:
        reply = await link.call(FETCH, batch_request(state.tp, offset, leader_epoch), router.request_timeout_ms)
        return state.tp, code, settled(end, reply, state.tp, offset, epoch)
    except KafkaError as failure:
        return state.tp, failure.code, end


def _judged(asked: _Asked, end: EpochEnd, resets: bool) -> LogTruncated | None:
    """Let the partition go on behind what the leader has; the error if that needs a reset which is not allowed."""
    state, offset, epoch, leader_epoch = asked
    position = state.position
    if position is None or state.fetch_from != offset or state.epochs.of(offset - 1) != epoch:
        return None  # it has moved meanwhile, and is compared again
    if end.holds(offset, epoch):
        state.leader_epoch = leader_epoch
        return None
    lost = _first_lost(state, end, epoch)
    if (lost is None and position < offset) or (lost is not None and lost >= position):
        state.go_back(position)  # only what nobody has seen yet is fetched again
        state.leader_epoch = leader_epoch if lost is not None else state.leader_epoch
        return None
    if not resets:
        return LogTruncated(state.tp, position, lost, NO_RESET)
    if lost is None:
        logger.warning("%s was truncated at an unknown offset before %d", state.tp, position)
        state.lose_position(out_of_range=True)
        return None
    line = "%s was truncated: going on at offset %d instead of %d, with records written since"
    logger.warning(line, state.tp, lost, position)
    state.start(lost, end.epoch if lost == end.end_offset else state.epochs.of(lost - 1))
    return None


def _first_lost(state: Assigned, end: EpochEnd, epoch: int) -> int | None:
    """The first offset that is known to differ; None if the leader does not know. If the leader never had the epoch,
    all that was read of later epochs than its own is lost, however long its log is."""
    if not end.is_known:
        return None
    above = state.epochs.first_above(end.epoch) if end.epoch < epoch else None
    return end.end_offset if above is None else min(end.end_offset, max(above, 0))
