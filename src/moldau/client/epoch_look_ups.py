"""Positions that are kept outside the cluster, compared with it on blocking sockets (KIP-320): which of them point
behind records that are no longer in the log, and the leader epoch that a position has to be kept with."""

from collections.abc import Mapping

from moldau.client.blocking import BlockingLink, Caller
from moldau.client.epoch_ends import AHEAD_S_MAX, EpochEnd, epoch_ends, epoch_ends_request
from moldau.client.failures import check
from moldau.client.given_positions import NO_EPOCH
from moldau.client.record_epochs import batch_request, is_open, settled
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH, OFFSET_FOR_LEADER_EPOCH

STEPS_MAX = 32
"""Changes of leaders that are gone back to find the epoch of an offset."""

Wanted = Mapping[TopicPartition, int]


def lost_since(caller: Caller, positions: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int | None]:
    """Of these positions (offset, epoch of the record before it) those whose record is gone: the first offset that is
    known to differ, or None if the leader does not know the epoch. Raises `KafkaError`."""
    ahead_until_s = monotonic_s() + min(AHEAD_S_MAX, caller.timeout_ms / 2_000)

    def ask() -> dict[TopicPartition, int | None]:
        leaders = _leader_epochs(caller, positions)
        doubtful = {tp: positions[tp][1] for tp, epoch in leaders.items() if epoch != positions[tp][1]}
        lost: dict[TopicPartition, int | None] = {}
        if monotonic_s() < ahead_until_s:
            leaders = {tp: max(leaders[tp], epoch) for tp, epoch in doubtful.items()}
        for tp, end in _ends(caller, doubtful, leaders).items():
            if is_open(end, *positions[tp]):
                reply = caller.leader(tp).call(FETCH, batch_request(tp, positions[tp][0], leaders[tp]))
                end = settled(end, reply, tp, *positions[tp])
            if not end.holds(*positions[tp]):
                lost[tp] = end.first_lost(positions[tp][0])
        return lost

    return caller.retrying(ask) if positions else {}


def epochs_before(caller: Caller, offsets: Wanted, lowest: Wanted) -> dict[TopicPartition, int]:
    """The leader epoch of the record before each offset, which is within the log; those that cannot be found are left
    out. `lowest` has epochs that some records are known not to be older than. Raises `KafkaError`."""

    def ask() -> dict[TopicPartition, int]:
        leaders = _leader_epochs(caller, {tp: offset for tp, offset in offsets.items() if offset > 0})
        newest = dict(leaders)
        epochs: dict[TopicPartition, int] = {}
        for _ in range(STEPS_MAX):
            epochs |= {tp: epoch for tp, epoch in newest.items() if epoch <= lowest.get(tp, NO_EPOCH)}
            newest = {tp: epoch for tp, epoch in newest.items() if tp not in epochs}
            if not newest:
                break
            older = {}
            for tp, end in _ends(caller, {tp: max(epoch - 1, 0) for tp, epoch in newest.items()}, leaders).items():
                if not end.is_known:
                    continue  # such as a log whose records are older than leader epochs
                if newest[tp] == 0 or end.end_offset < offsets[tp]:
                    epochs[tp] = newest[tp]
                else:
                    older[tp] = end.epoch
            newest = older
        return epochs

    return caller.retrying(ask) if any(offsets.values()) else {}


def _leader_epochs(caller: Caller, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, int]:
    """The epoch that each partition is led in; those of brokers that do not tell are left out."""
    topics = {tp.topic for tp in partitions}
    if topics - caller.view.topics.keys():
        caller.refresh(topics)
    epochs = {tp: caller.view.leader_epoch(tp) for tp in partitions if caller.leader(tp)}
    return {tp: epoch for tp, epoch in epochs.items() if epoch >= 0}


def _ends(caller: Caller, epochs: Wanted, leader_epochs: Wanted) -> dict[TopicPartition, EpochEnd]:
    by_leader: dict[BlockingLink, dict[TopicPartition, tuple[int, int]]] = {}
    for tp, epoch in epochs.items():
        by_leader.setdefault(caller.leader(tp), {})[tp] = epoch, leader_epochs[tp]
    ends: dict[TopicPartition, EpochEnd] = {}
    for link, wanted in by_leader.items():
        if link.versions.has(OFFSET_FOR_LEADER_EPOCH):
            reply = link.call(OFFSET_FOR_LEADER_EPOCH, epoch_ends_request(wanted))
            for tp, code, end in epoch_ends(reply, wanted):
                check(code, f"asking the leader of {tp} where epoch {epochs[tp]} ends")
                ends[tp] = end
    return ends
