"""When a transaction may begin in a partition."""

from moldau.errors import ErrorCode
from moldau.log.producers import verification
from moldau.log.producers.producers import Producers
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


def test_a_batch_gets_in_with_what_was_begun_for_it_or_if_a_transaction_is_open() -> None:
    producers, first = Producers(), header()
    assert verification.check(producers, first, None, 0) is INVALID
    begun = verification.begin(producers, first, NOW_MS)
    assert verification.check(producers, first, None, 0) is INVALID
    assert verification.check(producers, first, begun, 0) is None
    producers.appended(first, 0, NOW_MS)
    assert verification.is_open(producers, header(1))
    assert verification.check(producers, header(1), None, 0) is None
    assert not producers.verifying
    assert not verification.is_open(producers, header(0, epoch=1))
    assert verification.check(producers, header(0, epoch=1), begun, 0) is INVALID


def test_those_who_begin_together_hold_the_same() -> None:
    producers = Producers()
    assert verification.begin(producers, header(), NOW_MS) is verification.begin(producers, header(1), NOW_MS)
    assert verification.begin(producers, header(producer_id=8), NOW_MS) is not producers.verifying[7]


def test_a_marker_voids_what_was_begun_before_it() -> None:
    producers = Producers()
    begun = verification.begin(producers, header(), NOW_MS)
    producers.ended(header(), Marker(False, 0), 0, NOW_MS)
    assert verification.check(producers, header(), begun, 0) is INVALID
    again = verification.begin(producers, header(), NOW_MS)
    assert verification.check(producers, header(), begun, 0) is INVALID
    assert verification.check(producers, header(), again, 0) is None


def test_what_was_seen_first_comes_first() -> None:
    producers = Producers()
    begun = verification.begin(producers, header(5), NOW_MS)
    assert verification.check(producers, header(5), begun, 0) is None
    verification.begin(producers, header(3), NOW_MS)
    assert verification.check(producers, header(5), begun, 0) is ORDER
    assert verification.check(producers, header(3), begun, 0) is None
    verification.begin(producers, header(4, epoch=1), NOW_MS)
    assert verification.check(producers, header(4, epoch=1), begun, 0) is None
    verification.begin(producers, header(0, epoch=0), NOW_MS)
    assert verification.check(producers, header(4, epoch=1), begun, 0) is None


def test_whoever_lets_the_leader_add_partitions_begins_at_sequence_0() -> None:
    producers = Producers()
    begun = verification.begin(producers, header(3), NOW_MS)
    assert verification.check(producers, header(3), begun, 2) is ORDER
    begun = verification.begin(producers, header(0), NOW_MS)
    assert verification.check(producers, header(0), begun, 2) is None


def test_what_never_began_is_forgotten_with_silent_producers() -> None:
    producers = Producers()
    verification.begin(producers, header(), NOW_MS)
    list(producers.expire(NOW_MS + DAY_MS - 1, DAY_MS))
    assert producers.verifying
    list(producers.expire(NOW_MS + DAY_MS, DAY_MS))
    assert not producers.verifying


def test_made_up_producers_take_bounded_memory() -> None:
    producers = Producers()
    begun = verification.begin(producers, header(), NOW_MS)
    for producer_id in range(100, 100 + verification.VERIFYING_MAX - 1):
        verification.begin(producers, header(producer_id=producer_id), NOW_MS)
    assert verification.check(producers, header(), begun, 0) is None
    verification.begin(producers, header(producer_id=8), NOW_MS)
    assert len(producers.verifying) == verification.VERIFYING_MAX
    assert verification.check(producers, header(), begun, 0) is INVALID
