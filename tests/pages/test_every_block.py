"""Each code block of each published page is run by a test, or has a marked reason why none runs it."""

import re
from collections import Counter

import pytest

from tests.pages import blocks
from tests.pages.players import PLAYED


def unplayed(page: str, found: tuple[blocks.Block, ...]) -> list[str]:
    """The places of blocks that no test runs and that have no reason."""
    kinds = PLAYED.get(page, {})
    return [f"{block.place} ```{block.kind}" for block in found if not block.reason and block.kind not in kinds]


@pytest.mark.parametrize("page", blocks.pages())
def test_each_block_of_a_page_is_run_or_has_a_reason(page: str) -> None:
    assert unplayed(page, blocks.blocks_of(page)) == []


@pytest.mark.parametrize("page", blocks.pages())
def test_each_fence_of_a_page_belongs_to_a_block_and_each_reason_too(page: str) -> None:
    fences = len(re.findall(r"^ *```", blocks.text_of(page), re.MULTILINE))
    assert fences == 2 * len(blocks.blocks_of(page))
    assert blocks.marks_of(page) == sum(bool(block.reason) for block in blocks.blocks_of(page))


@pytest.mark.parametrize("page", blocks.pages())
def test_the_tests_that_a_reason_names_exist(page: str) -> None:
    named = [path for block in blocks.blocks_of(page) for path in re.findall(r"tests/[\w/.]*\w", block.reason)]
    assert [path for path in named if not (blocks.ROOT / path).exists()] == []


@pytest.mark.parametrize("page", sorted(PLAYED))
def test_the_table_names_tests_that_read_the_page_and_kinds_that_it_has(page: str) -> None:
    kinds = Counter(block.kind for block in blocks.blocks_of(page) if not block.reason)
    assert {kind for kind in PLAYED[page] if not kinds[kind]} == set(), "kinds that the page does not have"
    for test in {*PLAYED[page].values()}:
        text = (blocks.ROOT / test).read_text()
        names = "|".join((re.escape(page.rpartition("/")[2]), re.escape(page)))
        assert re.search(rf"""["'](?:{names})["']|ARCHITECTURE""", text), f"{test} does not name {page}"


def test_a_block_without_a_test_is_noticed() -> None:
    text = "a\n\n```toml\nx = 1\n```\n\n<!-- not run: a drawing -->\n```\na -> b\n```\n\n- x:\n\n  ```go\n  a\n  ```\n"
    found = [
        blocks.Block("new.md", 0, match["kind"], match["code"], match["reason"] or "")
        for match in blocks.FENCE.finditer(text)
    ]
    assert [(block.kind, block.reason) for block in found] == [("toml", ""), ("", "a drawing"), ("go", "")]
    assert unplayed("new.md", tuple(found)) == ["new.md:0 ```toml", "new.md:0 ```go"]
