"""A broker whose Python has no google-re2."""

import sys

import pytest

from moldau.coordinators.consumer.expressions import Expressions


def test_a_broker_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ValueError, match="google-re2"):
        Expressions().match("a", ["a"])
