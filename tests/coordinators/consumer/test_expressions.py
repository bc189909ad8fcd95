"""What expressions match, what is refused, how little is asked again, and how much is done at once."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.consumer.expressions import KEPT_MAX, Expressions, compiled

pytestmark = pytest.mark.re2

NAMES = st.lists(st.text("ab.", min_size=1, max_size=4), unique=True)
MANY = {f"orders-{number:05d}": None for number in range(10_000)}


def resolved(expressions: Expressions, expression: str, names: Collection[str]) -> tuple[str, ...]:
    """The answer, after as much work as it takes."""
    while (found := expressions.match(expression, names)) is None:
        task = expressions.task(expression, names)
        if task is not None:
            expressions.taken(task, task.run())
        expressions.renew()
    return found


@pytest.mark.parametrize(
    ("expression", "matched"),
    [
        ("t.*", ("ta", "tb")),
        ("t", ()),
        ("ta|u", ("ta", "u")),
        ("(?i)T.", ("ta", "tb")),
        (".*", ("__consumer_offsets", "ta", "tb", "u")),
        (r"\pL+", ("ta", "tb", "u")),
        ("(?<name>.)b", ("tb",)),
        ("", ()),
    ],
)
def test_an_expression_matches_names_as_a_whole(expression: str, matched: tuple[str, ...]) -> None:
    assert Expressions().match(expression, ["ta", "tb", "u", "__consumer_offsets"]) == matched


NONE = ["(", "[", "*", r"a\1", "(?=x)", "a{1,2000}", r"\Z", r"\pL{900}", "(x?){900}" * 30, "\ud800"]


@pytest.mark.parametrize("expression", NONE)
def test_what_is_no_expression_is_refused_with_a_reason(expression: str, capfd: pytest.CaptureFixture[str]) -> None:
    expressions = Expressions()
    for names in ((), (), ["a"]):
        with pytest.raises(ValueError, match=r"^\w+ \S+"):
            expressions.match(expression, names)
    assert capfd.readouterr().err == ""


def test_a_long_list_of_topics_is_an_expression() -> None:
    names = [f"warehouse.{number:03d}.orders" for number in range(250)]
    assert resolved(Expressions(), "|".join(names), [*names, "other"]) == tuple(names)


@given(st.lists(st.tuples(st.sampled_from(["a.*", "[ab]+", "b?"]), NAMES, st.booleans())), st.integers(0, 500))
def test_answers_do_not_depend_on_what_was_asked_before_or_was_done_how_far(
    asked: list[tuple[str, list[str], bool]], steps: int
) -> None:
    expressions = Expressions()
    tasks = []
    for expression, names, through in asked:
        expressions._steps = steps
        found = resolved(expressions, expression, names) if through else expressions.match(expression, names)
        pattern = compiled(expression)
        assert found in (tuple(sorted(name for name in names if pattern.fullmatch(name))), None)
        if found is None and names:
            task = expressions.task(expression, names)
            assert task is not None
            tasks.append(task)
        elif tasks:
            late = tasks.pop(0)
            expressions.taken(late, late.run())


class Counting(list[str]):
    """Names that count how often they are gone through."""

    gone_through = 0

    def __iter__(self):
        self.gone_through += 1
        return super().__iter__()


def test_the_same_names_are_not_gone_through_again_and_of_others_only_the_new_ones_are_matched() -> None:
    expressions = Expressions()
    first = Counting(["a1", "b1"])
    assert expressions.match("a.", first) == ("a1",)
    before = first.gone_through
    assert expressions.match("a.", first) == ("a1",)
    assert first.gone_through == before
    expressions._answers["a."].pattern = compiled("b2")
    assert expressions.match("a.", ["a1", "a2", "b2"]) == ("a1", "b2")
    assert expressions.match("a.", ["b1", "b2"]) == ("b2",)


def test_no_more_answers_are_kept_than_the_limit() -> None:
    expressions = Expressions()
    for number in range(KEPT_MAX + 10):
        expressions.renew()
        assert expressions.match(f"a{number}", ["a0"]) == (("a0",) if number == 0 else ())
    assert len(expressions._answers) == KEPT_MAX


def test_many_names_are_not_matched_at_once_however_many_expressions_ask() -> None:
    expressions, looked_at = Expressions(), 0
    for number in range(KEPT_MAX):
        assert expressions.match(f"orders-{number}.*", MANY) is None
        if f"orders-{number}.*" in expressions._answers:
            looked_at += len(MANY) - len(expressions._answers[f"orders-{number}.*"].left)
    assert 0 < looked_at < 500
    expressions.renew()
    task = expressions.task("orders-1.*", MANY)
    assert task is not None
    assert 500 < len(task.names) < len(MANY)
    assert len(resolved(expressions, "orders-0001.*", MANY)) == 10


def test_of_a_hostile_expression_few_names_are_one_task() -> None:
    expressions = Expressions()
    hostile = "(x?){900}"
    task = expressions.task(hostile, dict.fromkeys("x" * 200 + str(number) for number in range(1000)))
    assert task is not None
    assert len(task.names) < 5


def test_names_that_come_cost_what_they_are_for_every_expression_that_is_known() -> None:
    expressions = Expressions()
    asked = [f"orders-0{number}.*" for number in range(10)]
    for expression in asked:
        resolved(expressions, expression, MANY)
    more = {**MANY, "orders-x": None}
    expressions.renew()
    assert [len(expressions.match(expression, more) or ()) for expression in asked[:2]] == [1000, 1000]
    assert all(expressions.match(expression, more) is not None for expression in asked)
