import pytest
from hypothesis import given

from moldau.errors import ErrorCode, KafkaError
from moldau.records import rows
from moldau.records.arena import Arena
from moldau.records.batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    batches,
    encode_batch,
    encode_marker,
    place,
    stamp,
)
from moldau.records.rows import LOG_APPEND_TIME, Record
from tests.records import making
from tests.records.making import NOW, batch, record


@given(making.row_lists)
def test_rows_come_back_in_every_codec(some: list[making.Headers]) -> None:
    data = bytearray()
    for codec in range(5):
        data += encode_batch(some, codec=codec, base_offset=codec * len(some))
    read = list(rows.iterate(data))
    assert read == [
        Record(codec * len(some) + i, stamp, 0, key, value, list(headers))
        for codec in range(5)
        for i, (key, value, stamp, headers) in enumerate(some)
    ]


def test_only_the_offsets_asked_for_come_out() -> None:
    data = encode_batch([(b"%d" % i, None, NOW, ()) for i in range(10)], base_offset=5)
    data += encode_batch([(b"%d" % i, None, NOW, ()) for i in range(10, 20)], base_offset=15, codec=3)
    assert [row.offset for row in rows.iterate(data, 12, 18)] == [12, 13, 14, 15, 16, 17]
    assert [row.key for row in rows.iterate(data, 23)] == [b"18", b"19"]
    assert list(rows.iterate(data, 25)) == list(rows.iterate(data, 0, 5)) == []


def test_log_append_time_is_the_time_of_every_record() -> None:
    data = encode_batch([(b"a", None, 1, ()), (b"b", None, 2, ())])
    stamp(data, LOG_APPEND_TIME_BIT, NOW)
    assert [(row.timestamp_ms, row.timestamp_type) for row in rows.iterate(data)] == [(NOW, LOG_APPEND_TIME)] * 2


def test_control_records_are_seen_only_by_those_who_ask() -> None:
    data = encode_batch([(b"\0\0\0\1", b"\0\0\0\0\0\0", NOW, ())], attributes=CONTROL_BIT) + encode_batch(
        [(b"k", b"v", NOW, ())], base_offset=1
    )
    assert [row.offset for row in rows.iterate(data)] == [1]
    assert [row.offset for row in rows.iterate(data, control=True)] == [0, 1]


def test_a_batch_emptied_by_the_cleaner_is_passed_over() -> None:
    data = batch(last=4, count=0) + batch(record(0), base_offset=5)
    assert [row.offset for row in rows.iterate(data)] == [5]


def test_a_cut_off_tail_is_left_for_the_next_fetch() -> None:
    data = batch(record()) + batch(record(), base_offset=1)
    assert [row.offset for row in rows.iterate(data[:-1])] == [0]
    assert list(rows.iterate(data[:30])) == []


def test_header_keys_that_are_no_utf8_are_mended() -> None:
    data = batch(record(headers=[(b"\xff\xfe", b"x"), ("Vltava ž".encode(), None)]))
    assert [row.headers for row in rows.iterate(data)] == [[("��", b"x"), ("Vltava ž", None)]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (batch(record(), crc=1), "checksum"),
        (batch(record(), magic=1), "format 1"),
        (batch(record(), length=-5), "7 bytes"),
        (batch(record(), codec=4, change=lambda body: body[:-1]), "inflated"),
        (batch(record(), attributes=5), "inflated"),
        (batch(record(1)), "offset delta"),
        (batch(record(0), count=2), "record 1"),
    ],
)
def test_what_is_no_batch_is_corrupt(data: bytearray, message: str) -> None:
    with pytest.raises(KafkaError, match=message) as refused:
        list(rows.iterate(data))
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


def test_the_checksum_can_be_left_out() -> None:
    assert len(list(rows.iterate(batch(record(), crc=1), check_crcs=False))) == 1


def test_records_of_aborted_transactions_do_not_come_out() -> None:
    data = bytearray()
    story = ("w1", "w2", "p2", "a1", "w1", "c1", "w2", "a2", "w1", "w2", "c2", "a1")
    for offset, (what, producer_id) in enumerate(story):
        number = int(producer_id)
        if what in "ac":
            data += encode_marker(number, 1, what == "c", 0, NOW)
        else:
            attributes = TRANSACTIONAL_BIT if what == "w" else 0
            row = (b"%d" % offset, None, NOW, ())
            data += encode_batch([row], attributes=attributes, producer_id=number, base_sequence=0)
        place(data, offset, 0, at=[at for at, _ in batches(data)][-1])
    aborted = [(2, 1), (1, 0), (1, 8)]
    assert [row.key for row in rows.iterate(data, aborted=aborted)] == [b"2", b"4", b"9"]
    assert [row.offset for row in rows.iterate(data, control=True, aborted=aborted)] == [2, 3, 4, 5, 7, 9, 10, 11]
    assert len(list(rows.iterate(data))) == 7


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_inflates_to_too_much_is_refused_behind_those_before_it(codec: int) -> None:
    small, bomb = [(b"k", b"small", NOW, ())], [(b"k", bytes(300_000), NOW, ())]
    data = encode_batch(small, codec=codec) + encode_batch(bomb, codec=codec, base_offset=1)
    read = rows.iterate(data, inflated_max=100_000)
    assert next(read).value == b"small"
    with pytest.raises(KafkaError, match="offset 1 cannot be inflated: the batch holds more than 100000 bytes"):
        next(read)
    assert len([*rows.iterate(data, inflated_max=400_000)]) == 2


def test_a_batch_of_many_records_becomes_objects_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [(None, b"%d" % number, NOW, ()) for number in range(100)]
    data = encode_batch(many, codec=4) + encode_batch(many[:5], codec=4, base_offset=100)
    arena = Arena()
    whole = list(rows.iterate(data, 5))
    monkeypatch.setattr(rows, "ROWS_MAX", 30)
    taken: list[list[Record]] = []
    for some in rows.lists(data, Record, None, 5, arena=arena):
        arena.room(1 << 16)[: 1 << 16] = bytes(1 << 16)  # as another partition's batch would
        arena.clear()
        taken.append(some)
    assert [record for some in taken for record in some] == whole == list(rows.iterate(data, 5))
    assert [len(some) for some in taken] == [30, 30, 30, 5, 5]
