"""Paths into JSON and comparisons, as tables."""

import pytest

from moldau.console.search.json_paths import parse_condition, parse_path, replaced
from moldau.errors import ConfigError

TREE = {
    "user": {"id": 42, "name": "Jana", "first name": "J", "tags": ["a", "b"]},
    "items": [{"sku": "x", "n": 1}, {"sku": "y", "n": 2.5}],
    "error": None,
    "ok": True,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("$.user.id = 42", True),
        ("user.id == 42", True),
        ("$.user.id = 43", False),
        ("$.user.id != 43", True),
        ("$.user.id > 41", True),
        ("$.user.id <= 41.9", False),
        ('$.user.name = "Jana"', True),
        ("$.user.name = Jana", True),
        ("$.user.name contains an", True),
        ("$.user.name > I", True),
        ("$.user.name > 1", False),
        ("$.user.tags contains b", True),
        ("$.user.tags contains c", False),
        ("$.user['first name'] = J", True),
        ("$.items[*].sku = y", True),
        ("$.items[-1].n = 2.5", True),
        ("$.items[5].n = 2.5", False),
        ("$.error exists", True),
        ("$.error", True),
        ("$.error = null", True),
        ("$.nothing exists", False),
        ("$.ok = 1", False),
        ("$.ok = true", True),
        ("$.user[*] = 42", True),
    ],
)
def test_a_condition_holds_or_not(text: str, holds: bool) -> None:
    assert parse_condition(text).holds(TREE) is holds


@pytest.mark.parametrize(
    "text", ["", "$", "= 1", "$.a ~ 1", "$.a =", "$.a exists 1", "$..a", "$.a[?(@.b)]", "$" + ".a" * 60]
)
def test_what_is_no_condition_is_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"path|after|value|nothing"):
        parse_condition(text)


def test_values_are_replaced_wherever_a_path_leads() -> None:
    masked = replaced(TREE, parse_path("$.items[*].sku"), "*")
    assert [one["sku"] for one in masked["items"]] == ["*", "*"] and TREE["items"][0]["sku"] == "x"
    assert replaced(TREE, parse_path("$.user.tags[1]"), "*")["user"]["tags"] == ["a", "*"]
    assert replaced(TREE, parse_path("$.none.at.all"), "*") == TREE
    with pytest.raises(ConfigError):
        parse_path("$.a = 1")
