"""A bug that is put into the code on purpose is gone afterwards."""

import sys
from types import ModuleType

import pytest

from tests.replacing import Instead, replaced, returns

HERE = __name__


def answer() -> int:
    return 1


class Answers:
    def answer(self) -> int:
        return 1


class Heirs(Answers):
    pass


def imported(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that does `from tests.test_replacing import answer` now."""
    module = ModuleType("tests.imported_now")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(f"from {HERE} import answer", vars(module))
    return module


def test_a_function_is_replaced_and_put_back_wherever_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = imported(monkeypatch)
    with replaced([Instead(f"{HERE}:answer", returns(2))]):
        assert answer() == module.answer() == 2
    assert answer() == module.answer() == 1


def test_a_module_imported_meanwhile_does_not_keep_the_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    with replaced([Instead(f"{HERE}:answer", returns(3)), Instead(f"{HERE}:answer", returns(2))]):
        module = imported(monkeypatch)
        assert module.answer() == 2
    assert module.answer is answer
    assert answer() == 1


def test_a_method_of_a_base_is_replaced_in_the_heir_alone() -> None:
    with replaced([Instead(f"{HERE}:Heirs.answer", returns(2))]):
        assert (Heirs().answer(), Answers().answer()) == (2, 1)
    assert Heirs().answer() == 1
    assert "answer" not in vars(Heirs)


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match="is not there"), replaced([Instead(f"{HERE}:nobody", returns(2))]):
        pass
