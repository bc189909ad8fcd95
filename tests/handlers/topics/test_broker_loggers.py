"""Loggers with Kafka's names for levels: the level in force is described, and only existing loggers are changed."""

import logging
from collections.abc import Iterator

import pytest

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.errors import ErrorCode
from moldau.handlers.topics import broker_loggers

PARENT, CHILD = "moldau.tried", "moldau.tried.out"


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Two loggers, and every level as it was afterwards."""
    before = {logger: logger.level for logger in (logging.root, logging.getLogger(PARENT), logging.getLogger(CHILD))}
    yield
    for logger, level in before.items():
        logger.setLevel(level)


def set_to(name: str, level: str | None) -> Alteration:
    return Alteration(name, OpType.SET, level)


@pytest.mark.parametrize("level", broker_loggers.LEVELS)
def test_every_level_is_told_as_it_was_set(level: str) -> None:
    for name in (broker_loggers.ROOT, PARENT):
        assert broker_loggers.alter([set_to(name, level)]) is None
        assert broker_loggers.levels()[name] == level


def test_a_logger_has_its_parents_level_until_it_gets_its_own_and_again_when_that_is_deleted() -> None:
    broker_loggers.alter([set_to(PARENT, "ERROR")])
    assert broker_loggers.levels()[CHILD] == "ERROR"
    broker_loggers.alter([set_to(CHILD, "DEBUG")])
    assert broker_loggers.levels()[CHILD] == "DEBUG"
    assert logging.getLogger(CHILD).isEnabledFor(logging.DEBUG)
    broker_loggers.alter([Alteration(CHILD, OpType.DELETE, None)])
    assert broker_loggers.levels()[CHILD] == "ERROR"


def test_a_level_between_two_is_told_as_the_lower_one() -> None:
    logging.getLogger(PARENT).setLevel(logging.INFO + 3)
    assert broker_loggers.levels()[PARENT] == "INFO"


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ([set_to("moldau.no.such", "INFO")], ErrorCode.INVALID_CONFIG),
        ([Alteration("moldau.no.such", OpType.DELETE, None)], ErrorCode.INVALID_CONFIG),
        ([set_to(PARENT, "info")], ErrorCode.INVALID_CONFIG),
        ([set_to(PARENT, "WARNING")], ErrorCode.INVALID_CONFIG),
        ([set_to(PARENT, None)], ErrorCode.INVALID_REQUEST),
        ([Alteration(PARENT, OpType.APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        ([Alteration(PARENT, 9, "INFO")], ErrorCode.INVALID_REQUEST),
        ([Alteration("root", OpType.DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([set_to(PARENT, "INFO"), set_to(PARENT, "WARN")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_is_refused_and_with_it_what_is_right(wanted: list[Alteration], code: ErrorCode) -> None:
    before = broker_loggers.levels()
    refusal = broker_loggers.alter([set_to(CHILD, "FATAL"), *wanted])
    assert refusal is not None
    assert refusal.code is code
    assert broker_loggers.levels() == before


def test_what_is_only_validated_does_not_change() -> None:
    before = broker_loggers.levels()
    assert broker_loggers.alter([set_to(CHILD, "FATAL")], validate_only=True) is None
    assert broker_loggers.levels() == before


def test_no_logger_is_made_by_asking_for_it() -> None:
    broker_loggers.alter([set_to("moldau.never.heard.of", "INFO")])
    assert "moldau.never.heard.of" not in logging.root.manager.loggerDict
