"""The ledger notices everything that a log can do wrong."""

import pytest

from tests.end_to_end.ledger import Found, Ledger


def filled(count: int = 60, **kind: bool) -> tuple[Ledger, list[Found]]:
    """All acknowledged, and all there."""
    ledger = Ledger("t", 5, **kind)
    records = []
    for number in ledger.send(count):
        ledger.acknowledged(number, number)
        records.append(Found(number, number, ledger.key(number), ledger.value(number)))
    return ledger, records


def compacted(ledger: Ledger, records: list[Found]) -> list[Found]:
    """The last record of each key, and no tombstone."""
    last = {record.key: record for record in records}
    return [record for record in records if last[record.key] is record and record.value is not None]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_what_was_sent_is_right_however_often_it_is_looked_at(is_compacted: bool) -> None:
    ledger, records = filled(compacted=is_compacted)
    assert ledger.problems(records, 0, 60) == []
    assert ledger.problems(records[ledger.known_to :], 0, 60) == []


def test_a_compacted_log_may_lack_what_is_superseded() -> None:
    ledger, records = filled()
    assert ledger.problems(compacted(ledger, records), 0, 60) == []


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_lost_record_is_noticed(is_compacted: bool) -> None:
    ledger, records = filled(compacted=is_compacted)
    there = compacted(ledger, records) if is_compacted else records
    for at in range(len(there)):
        assert ledger.problems(there[:at] + there[at + 1 :], 0, 60)


def test_an_older_value_of_a_key_is_noticed() -> None:
    ledger, records = filled()
    last = max(records, key=lambda record: record.value is not None and record.offset)
    assert any("the last one there" in each for each in ledger.problems([r for r in records if r is not last], 0, 60))


def test_a_value_that_was_erased_does_not_come_back() -> None:
    ledger = Ledger("t", 1)
    while ledger.value(ledger.send(1)[0]) is not None:
        pass
    for number in range(ledger.sent):
        ledger.acknowledged(number, number)
    tombstone = ledger.sent - 1
    before = Found(tombstone - 1, tombstone - 1, ledger.key(tombstone - 1), ledger.value(tombstone - 1))
    assert ledger.problems([], 0, ledger.sent) == []
    assert ledger.problems([before], 0, ledger.sent)


def test_a_record_that_was_never_acknowledged_may_be_there_or_not_but_stays_once_it_was_seen() -> None:
    ledger, records = filled(compacted=False)
    number = ledger.send(1)[0]
    record = Found(60, number, ledger.key(number), ledger.value(number))
    assert ledger.problems(records, 0, 60) == []
    assert ledger.problems([record], 0, 61) == []
    with pytest.raises(AssertionError):
        ledger.acknowledged(ledger.send(1)[0], 60)
    assert ledger.problems([], 0, 60)


def test_an_offset_or_a_number_that_comes_twice_is_noticed() -> None:
    ledger, records = filled(compacted=False)
    assert ledger.problems([*records[:10], *records[9:]], 0, 60)
    assert ledger.problems([*records, Found(60, 59, ledger.key(59), ledger.value(59))], 0, 61)
    with pytest.raises(AssertionError, match="twice"):
        ledger.acknowledged(5, 100)


def test_what_moved_or_changed_or_was_never_sent_is_noticed() -> None:
    ledger, records = filled()
    assert ledger.problems([record._replace(offset=record.offset + 1) for record in records], 0, 61)
    assert ledger.problems([*records[:-1], records[-1]._replace(value=b"another")], 0, 60)
    assert ledger.problems([*records, records[-1]._replace(offset=60, number=1000)], 0, 61)


def test_ends_that_go_back_are_noticed() -> None:
    ledger, records = filled(deletes=True)
    assert ledger.problems(records, 0, 59)
    assert ledger.problems(records[10:], 10, 60) == []
    assert ledger.problems(records, 0, 60)
    keeps, records = filled()
    assert keeps.problems(records[10:], 10, 60)
