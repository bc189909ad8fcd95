"""Every bug that is put in on purpose is in the table of tests/README.md, and `make check` catches most of them."""

import re
from collections import Counter

from tests.put_in_bugs import MARKED, PAGE, ROOT, TABLE, table

EXPECTS = re.compile(r"with [^\n]*\breplaced\([^\n]*pytest\.raises")


def test_the_table_is_that_of_the_tests_and_most_bugs_are_caught_before_the_long_tier() -> None:
    kept = TABLE.search(PAGE.read_text())
    assert kept and kept[0] == table(), "write it anew: python -m tests.put_in_bugs --write"
    tiers = Counter(line.rsplit("|", 2)[1].strip() for line in kept[0].splitlines()[2:])
    assert tiers["test"] + tiers["check"] >= 0.6 * tiers.total() > 100
    assert tiers["test"] >= 20


def test_who_replaces_production_code_and_expects_a_failure_is_marked() -> None:
    unmarked = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob("tests/**/test_*.py"))
        if EXPECTS.search(text := path.read_text()) and not MARKED.search(text)
    ]
    assert unmarked == []
