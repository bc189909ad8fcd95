"""Names of fields that can stand beside each other."""

import pytest

from moldau.pipeline.decoding.struct_names import apart


@pytest.mark.parametrize(
    ("names", "known", "kept"),
    [
        ("x X y", "", "x y"), ("X x", "x", "x"), ("x X", "X x", "X x"), ("a.b a c", "", "a c"), ("a", "a.b", "a.b"),
        ("a.b", "a", "a"), ("a.b a.c ab", "", "a.b a.c ab"), ("a.b.c a.b a.d", "", "a.b a.d"), ("A.b a", "", "A.b a"),
        (".", "", "."), ("a. a", "", "a"), ("a\0 a", "", "a"), (".".join("a" * 40), "", ""),
    ],
)  # fmt: skip
def test_names_in_a_struct(names: str, known: str, kept: str) -> None:
    assert apart(names.split(), known.split()) == kept.split()


def test_columns_may_differ_in_case_only_because_they_get_other_names() -> None:
    assert apart(["x", "X", "a\0", "a.b", "a"], in_struct=False) == ["x", "X", "a\0", "a"]
