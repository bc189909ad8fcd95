"""Bugs of the console put in on purpose: the tests of its guards, its masks and its searches find them."""

from collections.abc import Callable
from typing import Any

import pytest

from moldau.console.search.masking import TopicMask
from tests.console import test_guards as guards
from tests.console.search import test_json_paths as json_paths
from tests.console.search import test_search as search
from tests.replacing import Instead, assert_found, nothing, with_patches

SEARCH = "moldau.console.search"
GUARDS = "moldau.console.web.guards"
Do = Callable[..., Any]


def matched_before_masked() -> list[Instead]:
    """What is found is masked, but it is found by what is hidden."""
    raw: list[Any] = []

    def readable(masked: Do, batch: Any, mask: Any, decode: Any) -> Any:
        raw[:] = [masked(batch, TopicMask(), decode)]
        return masked(batch, mask, decode)

    def hits(of: Do, self: Any, *_: Any) -> Any:
        return of(self, *raw[0])

    return [
        Instead(f"{SEARCH}.scanning:readable", readable), Instead(f"{SEARCH}.matching:SearchMatcher.hits", hits),
    ]  # fmt: skip


def _shows_what_is_not_json(masked_value: Do, self: Any, value: bytes | None) -> bytes | None:
    masked: bytes | None = masked_value(self, value)
    return value if masked is not None and masked.endswith(b"(not JSON)") else masked


def change(headers: dict[str, str], session: str = guards.SESSION) -> Callable[[], None]:
    expected = (guards.FORBIDDEN,)
    return lambda: guards.test_a_change_comes_from_a_page_of_ours_with_the_token_of_its_session(
        headers, session, expected
    )


def page(headers: dict[str, str], status: int) -> Callable[[], None]:
    return lambda: guards.test_a_page_is_shown_under_our_names_and_not_within_foreign_pages(headers, (status,))


BUGS: dict[str, tuple[Instead | list[Instead], Callable[[], None]]] = {
    "records are matched before they are masked": (
        matched_before_masked(),
        with_patches(search.test_a_search_finds_nothing_that_it_hides),
    ),
    "hidden headers are shown": (
        Instead(f"{SEARCH}.records:_masked", lambda _, headers, __: headers),
        search.test_what_is_hidden_is_neither_shown_nor_found,
    ),
    "a value that is not JSON is shown though members are hidden": (
        Instead(f"{SEARCH}.masking:TopicMask.masked_value", _shows_what_is_not_json),
        search.test_what_is_hidden_is_neither_shown_nor_found,
    ),
    "the first rule for a topic is the only one": (
        Instead(
            f"{SEARCH}.masking:MaskRules.of", lambda of, self, topic: next(m for p, m in self._rules if p == topic)
        ),
        search.test_what_is_hidden_is_neither_shown_nor_found,
    ),
    "an exported cell is a formula": (
        Instead(f"{SEARCH}.exporting:_safe", lambda _, text: text),
        search.test_exports_are_what_commands_read_and_spreadsheets_do_not_run,
    ),
    "a hidden member of JSON is shown": (
        Instead(f"{SEARCH}.json_paths:replaced", lambda _, tree, *__: tree),
        json_paths.test_values_are_replaced_wherever_a_path_leads,
    ),
    "any name may be in Host": (
        Instead(f"{GUARDS}:check_host", nothing),
        page({"host": "evil.example"}, guards.MISDIRECTED),
    ),
    "a page of another site may have searches carried out": (
        Instead(f"{GUARDS}:check_reader", nothing),
        page(guards.PICTURE, guards.FORBIDDEN),
    ),
    "a page of another site may change something": (Instead(f"{GUARDS}:check_origin", nothing), change(guards.FOREIGN)),
    "a form needs no token": (Instead(f"{GUARDS}:FormTokens.check", nothing), change({}, "another")),
    "all sessions have one token": (
        Instead(f"{GUARDS}:FormTokens.of", lambda of, self, _: of(self, "")),
        change({}, "another"),
    ),
    "a read-only console takes changes": (
        Instead("moldau.console.app:ConsoleApp._with_form", lambda _, __, request, *___: request),
        guards.test_a_read_only_console_takes_no_change_but_logins,
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert_found(*BUGS[name])
