"""The table of error codes."""

import pytest

from moldau.errors import ErrorCode, KafkaError


def test_codes_are_kafkas_without_a_gap() -> None:
    assert sorted(code.value for code in ErrorCode) == list(range(-1, 134))
    assert not ErrorCode.NONE
    assert not ErrorCode.NONE.retriable


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_every_code_has_a_sentence_of_its_own(code: ErrorCode) -> None:
    assert 8 < len(code.sentence) < 100
    assert not code.sentence.endswith(".")
    assert [other for other in ErrorCode if other.sentence == code.sentence] == [code]


def test_an_error_without_a_message_says_its_codes_sentence() -> None:
    error = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert str(error) == "the partition has no leader at the moment (LEADER_NOT_AVAILABLE)"
    assert error.message is None
    assert error.retriable
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no")) == "no"
