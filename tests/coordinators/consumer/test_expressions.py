"""What expressions match, what is refused, and how little is asked again."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.consumer.expressions import KEPT_MAX, Expressions

NAMES = st.lists(st.text("ab.", min_size=1, max_size=4), unique=True)


@pytest.mark.parametrize(
    ("expression", "matched"),
    [
        ("t.*", ["ta", "tb"]),
        ("t", []),
        ("ta|u", ["ta", "u"]),
        ("(?i)T.", ["ta", "tb"]),
        (".*", ["ta", "tb", "u", "__consumer_offsets"]),
        (r"\pL+", ["ta", "tb", "u"]),
        ("(?<name>.)b", ["tb"]),
        ("", []),
    ],
)
def test_an_expression_matches_names_as_a_whole(expression: str, matched: list[str]) -> None:
    assert Expressions().match(expression, ["ta", "tb", "u", "__consumer_offsets"]) == matched


@pytest.mark.parametrize("expression", ["(", "[", "*", r"a\1", "(?=x)", "a{1,2000}", r"\Z", r"\pL{900}", "\ud800"])
def test_what_is_no_expression_is_refused_with_a_reason(expression: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"^\w+ \S+"):
        Expressions().match(expression, ())
    assert capfd.readouterr().err == ""


def test_a_broker_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ValueError, match="google-re2"):
        Expressions().match("a", ["a"])


@given(st.lists(st.tuples(st.sampled_from(["a.*", "[ab]+", "b?"]), NAMES)))
def test_answers_do_not_depend_on_what_was_asked_before(asked: list[tuple[str, list[str]]]) -> None:
    expressions = Expressions()
    for expression, names in asked:
        assert expressions.match(expression, names) == Expressions().match(expression, names)


class Counting(list[str]):
    """Names that count how often it is asked whether one is among them."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)


def test_the_same_names_are_not_gone_through_again_and_of_others_only_the_new_ones_are_matched() -> None:
    expressions = Expressions()
    first = Counting(["a1", "b1"])
    assert expressions.match("a.", first) == ["a1"]
    assert expressions.match("a.", first) == ["a1"]
    assert first.asked == 0
    assert expressions.match("a.", ["a1", "b1", "a2"]) == ["a1", "a2"]
    assert first.asked == 3


def test_no_more_answers_are_kept_than_the_limit() -> None:
    expressions = Expressions()
    for number in range(KEPT_MAX + 10):
        assert expressions.match(f"a{number}", ["a0"]) == (["a0"] if number == 0 else [])
    assert len(expressions._answers) == KEPT_MAX
