"""The judges of transactions let pass what is right and notice each thing that can be wrong."""

import pytest

from tests.clients.transactions.judging import (
    Entry,
    entries,
    faults_of_a_copy,
    faults_of_an_audit,
    faults_of_counts,
    faults_of_the_end,
)

SOURCE = {0: [("0", "a"), ("2", "b"), ("4", "b")], 1: [("1", "c")], 2: []}


def copied() -> dict[int, list[tuple[str, str]]]:
    return {number: [(key, f"{value} copied") for key, value in rows] for number, rows in SOURCE.items()}


def test_an_exact_copy_has_no_faults() -> None:
    assert faults_of_a_copy(SOURCE, copied()) == []


def test_a_copy_with_a_fault_is_noticed() -> None:
    lost, twice, swapped, invented, moved = (copied() for _ in range(5))
    del lost[0][1]
    twice[0].insert(1, twice[0][0])
    swapped[0][0], swapped[0][1] = swapped[0][1], swapped[0][0]
    invented[2].append(("7", "x copied"))
    moved[2].append(moved[1].pop())
    assert "1 lost" in faults_of_a_copy(SOURCE, lost)[0]
    assert "1 there more than once" in faults_of_a_copy(SOURCE, twice)[0]
    assert "not in the order" in faults_of_a_copy(SOURCE, swapped)[0]
    assert "1 not of the source" in faults_of_a_copy(SOURCE, invented)[0]
    assert len(faults_of_a_copy(SOURCE, moved)) == 2
    assert len(faults_of_a_copy(SOURCE, {})) == 2


LINES = ["to be or", "not to be"]
UPDATES = [("to", "1"), ("be", "1"), ("or", "1"), ("not", "1"), ("to", "2"), ("be", "2")]


def test_counts_that_go_up_one_by_one_have_no_faults() -> None:
    assert faults_of_counts(LINES, UPDATES) == []


@pytest.mark.parametrize(
    "updates",
    [
        UPDATES[:-1],
        [*UPDATES, ("to", "3")],
        [*UPDATES, ("be", "2")],
        [("to", "2"), *UPDATES[1:4], ("to", "2"), ("be", "2")],
        [*UPDATES, ("that", "1")],
        [row for row in UPDATES if row[0] != "or"],
        [],
    ],
    ids=["one short", "one more", "again", "skipped", "unknown", "missing", "nothing"],
)
def test_wrong_counts_are_noticed(updates: list[tuple[str, str]]) -> None:
    assert faults_of_counts(LINES, updates)


def made() -> dict[int, list[Entry]]:
    """Two accounts of 100 each in two partitions, and two transfers of which the second has two entries for one."""
    one, three = [Entry("open", n, 100, 2, False) for n in (0, 1)], Entry("b", 1, -1, 3, False)
    return {
        0: [one[0], Entry("a", 0, -5, 2, False), Entry("b", 0, 2, 3, False)],
        1: [one[1], three, three, Entry("a", 1, 5, 2, False)],
    }


def test_books_without_faults_have_none() -> None:
    assert faults_of_the_end(made(), 200, ["open", "a", "b"]) == []


def test_a_transfer_that_a_reader_sees_half_does_not_count_until_the_end() -> None:
    books = made()
    del books[1][3:]
    assert faults_of_an_audit(books, 200) == []
    assert faults_of_the_end(books, 200, ["open"]) == ["there in part: ['a']"]


def test_what_was_committed_and_is_missing_is_noticed() -> None:
    books = made()
    del books[0][1], books[1][3]
    assert faults_of_the_end(books, 200, ["open", "b"]) == []
    assert faults_of_the_end(books, 200, ["open", "a", "b"]) == ["committed, but not there: ['a']"]


def test_an_aborted_transfer_that_can_be_read_is_noticed_even_in_part() -> None:
    books = made()
    books[0].append(Entry("c", 0, 7, 2, True))
    assert faults_of_an_audit(books, 200) == ["aborted, but to be read: ['c']"]


def test_an_entry_that_is_there_twice_is_noticed_and_changes_the_sum() -> None:
    books = made()
    books[1].append(books[1][3])
    assert faults_of_an_audit(books, 200) == [
        "more entries than were made: ['a']",
        "the accounts hold 205 together, not 200",
    ]


def test_what_changes_below_an_audit_is_noticed() -> None:
    before, books = made(), made()
    assert faults_of_an_audit(books, 200, before) == []
    before[1] = before[1][:2]
    assert faults_of_an_audit(books, 200, before) == []
    books[1].insert(1, books[1].pop())
    assert faults_of_an_audit(books, 200, before) == ["partition 1: what was read before is gone or has changed"]
    assert len(faults_of_an_audit({}, 200, before)) == 3


def test_entries_are_read_from_keys_and_values() -> None:
    value = '{"transaction": "a", "amount": -5, "of": 2, "doomed": false}'
    assert entries({3: [("17", value)]}) == {3: [Entry("a", 17, -5, 2, False)]}
