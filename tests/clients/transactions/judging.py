"""What must hold of topics that were written in transactions: pure functions that return what is wrong, in sentences.

Contents are keys and values by partition, in the order of the log, as a reader of committed records sees them.

The books of the bank: every transaction's entries say how many there are of it (`of`) and whether it was never to be
committed (`doomed`). A reader that stops somewhere may have seen a part of a transaction, as partitions end each for
itself; it counts only transactions that it has seen wholly, and at the end there is no other.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

Contents = Mapping[int, Sequence[tuple[str, str]]]
SHOWN = 5


class Entry(NamedTuple):
    """One account's part in a transaction."""

    transaction: str
    account: int
    amount: int
    of: int
    doomed: bool


Books = Mapping[int, Sequence[Entry]]


def faults_of_a_copy(source: Contents, copy: Contents) -> list[str]:
    """The copy has each record once, in its partition, in the order of the source."""
    found = []
    for number in sorted({*source, *copy}):
        wanted = [(key, f"{value} copied") for key, value in source.get(number, ())]
        seen = list(copy.get(number, ()))
        if seen == wanted:
            continue
        lost, surplus = Counter(wanted) - Counter(seen), Counter(seen) - Counter(wanted)
        known = set(wanted)
        twice = [row for row in surplus if row in known]
        invented = [row for row in surplus if row not in known]
        for what, rows in (("lost", list(lost)), ("there more than once", twice), ("not of the source", invented)):
            if rows:
                found.append(f"partition {number}: {len(rows)} {what}: {rows[:SHOWN]}")
        if not lost and not surplus:
            found.append(f"partition {number}: not in the order of the source")
    return found


def faults_of_counts(lines: Sequence[str], updates: Sequence[tuple[str, str]]) -> list[str]:
    """Every word's updates are 1, 2, 3 and so on to how often it is in the lines. `updates` are in the log's order."""
    wanted = Counter(word for line in lines for word in line.split())
    seen: dict[str, list[int]] = defaultdict(list)
    for word, count in updates:
        seen[word].append(int(count))
    found = [f"{word} is in no line" for word in seen if word not in wanted]
    for word, times in sorted(wanted.items()):
        counts = seen.get(word, [])
        if not counts or counts[-1] != times:
            found.append(f"{word} is counted {counts[-1] if counts else 0} times, not {times}")
        elif counts != list(range(1, times + 1)):
            wrong = next(after for before, after in pairwise([0, *counts]) if after != before + 1)
            found.append(f"{word}: a record was counted more or less than once near {wrong}")
    return found


def entries(contents: Contents) -> dict[int, list[Entry]]:
    return {
        number: [Entry(account=int(key), **json.loads(value)) for key, value in rows]
        for number, rows in contents.items()
    }


def whole_and_parts(books: Books) -> tuple[dict[str, list[Entry]], dict[str, list[Entry]]]:
    """The transactions of which all entries are there (or more than that), and those with fewer."""
    by_transaction: dict[str, list[Entry]] = defaultdict(list)
    for rows in books.values():
        for entry in rows:
            by_transaction[entry.transaction].append(entry)
    whole = {name: rows for name, rows in by_transaction.items() if len(rows) >= rows[0].of}
    return whole, {name: rows for name, rows in by_transaction.items() if name not in whole}


def faults_of_an_audit(books: Books, total: int, before: Books | None = None) -> list[str]:
    """The whole transactions sum up to the total, none is doomed, no entry is there twice, and what an audit before
    saw is where it was."""
    found = []
    whole, parts = whole_and_parts(books)
    twice = [name for name, rows in whole.items() if len(rows) > rows[0].of]
    doomed = [name for name, rows in {**whole, **parts}.items() if rows[0].doomed]
    if twice:
        found.append(f"more entries than were made: {twice[:SHOWN]}")
    if doomed:
        found.append(f"aborted, but to be read: {doomed[:SHOWN]}")
    if (held := sum(entry.amount for rows in whole.values() for entry in rows)) != total:
        found.append(f"the accounts hold {held} together, not {total}")
    for number, rows in (before or {}).items():
        if list(books.get(number, ()))[: len(rows)] != list(rows):
            found.append(f"partition {number}: what was read before is gone or has changed")
    return found


def faults_of_the_end(books: Books, total: int, acknowledged: Collection[str]) -> list[str]:
    """Beyond an audit: no transaction is there in part, and every one whose commit was acknowledged is there."""
    whole, parts = whole_and_parts(books)
    found = faults_of_an_audit(books, total)
    if parts:
        found.append(f"there in part: {sorted(parts)[:SHOWN]}")
    if missing := [name for name in acknowledged if name not in whole and name not in parts]:
        found.append(f"committed, but not there: {sorted(missing)[:SHOWN]}")
    return found
