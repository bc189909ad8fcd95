"""The loggers of this process and their levels, by Kafka's names: the resource "broker logger" (KIP-412).

The level of a logger is its effective one: its own, or its parent's. Only existing loggers can be changed, and a change
lasts until the process ends. Python has no TRACE level; a level below DEBUG replaces it.
"""

import logging
from collections.abc import Sequence

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.controlling.controller import Refusal
from moldau.errors import ErrorCode

ROOT = "root"
LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
OURS = logging.getLogger("moldau")
"""The parent of all our loggers exists even if nothing logs with it."""


def levels() -> dict[str, str]:
    """Every logger's level, the root's first."""
    level_of = {ROOT: _level(logging.root)}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            level_of[name] = _level(logger)
    return level_of


def _level(logger: logging.Logger) -> str:
    number = logger.getEffectiveLevel()
    return next((name for name in reversed(LEVELS) if LEVELS[name] <= number), "TRACE")


def alter(wanted: Sequence[Alteration], *, validate_only: bool = False) -> Refusal | None:
    """Set levels or reset them to the parent's. Applies all changes, or none and returns the refusal."""
    known = levels()
    if len({one.name for one in wanted}) < len(wanted):
        return Refusal(ErrorCode.INVALID_REQUEST, "a logger is named more than once")
    for one in wanted:
        refusal = _refusal(one, known.get(one.name))
        if refusal:
            return refusal
    for name, operation, level in () if validate_only else wanted:
        number = logging.NOTSET if operation == OpType.DELETE else LEVELS[level or ""]
        (logging.root if name == ROOT else logging.getLogger(name)).setLevel(number)
    return None


def _refusal(one: Alteration, now: str | None) -> Refusal | None:
    if one.operation not in (OpType.SET, OpType.DELETE):
        return Refusal(ErrorCode.INVALID_REQUEST, "a logger's level can be set or deleted, and nothing else")
    if one.operation == OpType.SET and one.value is None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"{one.name[:200]} has no value")
    if now is None:
        return Refusal(ErrorCode.INVALID_CONFIG, f"the logger {one.name[:200]} does not exist")
    if one.operation == OpType.DELETE and one.name == ROOT:
        return Refusal(ErrorCode.INVALID_REQUEST, "the level of the root logger cannot be deleted")
    if one.operation == OpType.SET and one.value not in LEVELS:
        choices = ", ".join(LEVELS)
        return Refusal(ErrorCode.INVALID_CONFIG, f"the level of {one.name[:200]} must be one of {choices}")
    return None
