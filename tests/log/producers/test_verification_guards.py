"""When a transaction may begin in a partition."""

from moldau.errors import ErrorCode
from moldau.log.producers.producers import Producers
from moldau.log.producers.verification_guards import GUARDS_MAX, check, is_open, obtain
from moldau.records.batch import TRANSACTIONAL_BIT, BatchHeader, Marker
from moldau.records.validation import NO_HEADER

INVALID, ORDER = ErrorCode.INVALID_TXN_STATE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
NOW_MS, DAY_MS = 1_000, 86_400_000


def header(first: int = 0, epoch: int = 0, producer_id: int = 7) -> BatchHeader:
    return NO_HEADER._replace(
        attributes=TRANSACTIONAL_BIT,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=first,
        last_offset_delta=0,
        count=1,
    )


def test_a_batch_is_appended_with_its_guard_or_if_a_transaction_is_open() -> None:
    producers, first = Producers(), header()
    assert check(producers, first, None, 0) is INVALID
    guard = obtain(producers, first, NOW_MS)
    assert check(producers, first, None, 0) is INVALID
    assert check(producers, first, guard, 0) is None
    producers.appended(first, 0, NOW_MS)
    assert is_open(producers, header(1))
    assert check(producers, header(1), None, 0) is None
    assert not producers.guards
    assert not is_open(producers, header(0, epoch=1))
    assert check(producers, header(0, epoch=1), guard, 0) is INVALID


def test_batches_of_one_producer_obtain_the_same_guard() -> None:
    producers = Producers()
    assert obtain(producers, header(), NOW_MS) is obtain(producers, header(1), NOW_MS)
    assert obtain(producers, header(producer_id=8), NOW_MS) is not producers.guards[7]


def test_a_marker_voids_the_guard() -> None:
    producers = Producers()
    guard = obtain(producers, header(), NOW_MS)
    producers.ended(header(), Marker(False, 0), 0, NOW_MS)
    assert check(producers, header(), guard, 0) is INVALID
    again = obtain(producers, header(), NOW_MS)
    assert check(producers, header(), guard, 0) is INVALID
    assert check(producers, header(), again, 0) is None


def test_a_late_marker_leaves_the_guard_of_the_next_transaction() -> None:
    """Version 2: EndTxn is answered before the markers are written, and the next transaction has their epoch."""
    producers = Producers()
    ended = obtain(producers, header(), NOW_MS)
    producers.ended(header(epoch=1), Marker(False, 0), 0, NOW_MS, transaction_version=2)
    assert check(producers, header(), ended, 2) is INVALID
    following = obtain(producers, header(epoch=1), NOW_MS)
    producers.ended(header(epoch=1), Marker(False, 0), 1, NOW_MS, transaction_version=2)
    assert check(producers, header(epoch=1), following, 2) is None
    producers.ended(header(epoch=1), Marker(False, 0), 2, NOW_MS, transaction_version=1)
    assert check(producers, header(epoch=1), following, 2) is INVALID


def test_the_batch_with_the_lowest_sequence_seen_is_first() -> None:
    producers = Producers()
    guard = obtain(producers, header(5), NOW_MS)
    assert check(producers, header(5), guard, 0) is None
    obtain(producers, header(3), NOW_MS)
    assert check(producers, header(5), guard, 0) is ORDER
    assert check(producers, header(3), guard, 0) is None
    obtain(producers, header(4, epoch=1), NOW_MS)
    assert check(producers, header(4, epoch=1), guard, 0) is None
    obtain(producers, header(0, epoch=0), NOW_MS)
    assert check(producers, header(4, epoch=1), guard, 0) is None


def test_a_producer_that_has_the_leader_add_partitions_begins_at_sequence_0() -> None:
    producers = Producers()
    guard = obtain(producers, header(3), NOW_MS)
    assert check(producers, header(3), guard, 2) is ORDER
    guard = obtain(producers, header(0), NOW_MS)
    assert check(producers, header(0), guard, 2) is None


def test_a_guard_of_a_transaction_that_never_began_expires_with_silent_producers() -> None:
    producers = Producers()
    obtain(producers, header(), NOW_MS)
    list(producers.expire(NOW_MS + DAY_MS - 1, DAY_MS))
    assert producers.guards
    list(producers.expire(NOW_MS + DAY_MS, DAY_MS))
    assert not producers.guards


def test_invented_producers_take_bounded_memory() -> None:
    producers = Producers()
    guard = obtain(producers, header(), NOW_MS)
    for producer_id in range(100, 100 + GUARDS_MAX - 1):
        obtain(producers, header(producer_id=producer_id), NOW_MS)
    assert check(producers, header(), guard, 0) is None
    obtain(producers, header(producer_id=8), NOW_MS)
    assert len(producers.guards) == GUARDS_MAX
    assert check(producers, header(), guard, 0) is INVALID
