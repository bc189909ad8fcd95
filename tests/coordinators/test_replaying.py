"""Records of transactions take effect with their marker or not at all, whatever chunks they come in."""

import pytest

from moldau.coordinators.decision import InternalRecord
from moldau.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, Row, encode_batch, encode_marker
from tests.coordinators.replayed import Replaying


def plain(*keys: bytes) -> bytes:
    return bytes(encode_batch([Row(key, b"v", 1) for key in keys]))


def transactional(producer_id: int, *keys: bytes) -> bytes:
    rows = [Row(key, b"v", 1) for key in keys]
    return bytes(encode_batch(rows, attributes=TRANSACTIONAL_BIT, producer_id=producer_id, producer_epoch=0))


def marker(producer_id: int, commits: bool) -> bytes:
    return bytes(encode_marker(producer_id, 0, commits, 0, 1))


def effects(*chunks: bytes) -> list[bytes]:
    replaying = Replaying()
    return [record.key for chunk in chunks for record in replaying.records(chunk)]


LOG = [
    plain(b"a"),
    transactional(1, b"b", b"c"),
    transactional(2, b"x"),
    plain(b"d"),
    marker(2, commits=False),
    transactional(1, b"e"),
    marker(1, commits=True),
    transactional(2, b"f"),
    marker(2, commits=True),
    transactional(3, b"undecided"),
    plain(b"g"),
]
EFFECTS = [b"a", b"d", b"b", b"c", b"e", b"f", b"g"]


@pytest.mark.parametrize("size", range(1, len(LOG) + 1))
def test_what_was_committed_takes_effect_with_its_marker(size: int) -> None:
    chunks = [b"".join(LOG[at : at + size]) for at in range(0, len(LOG), size)]
    assert effects(*chunks) == EFFECTS


def test_a_chunk_without_transactions_is_as_it_is() -> None:
    chunk = plain(b"a", b"b") + bytes(encode_batch([Row(None, b"no key", 1)])) + plain(b"c")
    assert list(Replaying().records(chunk)) == [InternalRecord(key, b"v") for key in (b"a", b"b", b"c")]


def test_a_control_batch_that_is_no_marker_decides_nothing() -> None:
    odd = encode_batch(
        [Row(b"\0\0\0\x05", b"", 1)], attributes=TRANSACTIONAL_BIT | CONTROL_BIT, producer_id=1, producer_epoch=0
    )
    assert effects(transactional(1, b"a"), bytes(odd), marker(1, commits=True)) == [b"a"]
