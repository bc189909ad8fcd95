"""Every setting of a subscription to metrics of clients (KIP-714), one line each, and what is wrong with its values.

A subscription says which metrics the clients that match it push to their brokers, and how often. `match` has a regular
expression for each attribute of a client that it names; all of them must match the whole attribute. Unlike Kafka's they
are RE2's: linear in time. Source: KIP-714; the codes are those of Kafka 4.3.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.config.expressions import compiled
from moldau.config.setting import INT, LIST, Setting, settings_of
from moldau.errors import ConfigError, ErrorCode

ALL_METRICS = "*"
ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What `match` may ask of a client."""
EXPRESSION_BYTES_MAX = 64 << 10
"""The most memory of a compiled expression, of which a broker tries many for each client."""
INTERVAL_MIN_MS, INTERVAL_MAX_MS = 100, 3_600_000


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class ClientMetricsConfig:
    """The settings of one subscription."""

    metrics: tuple[str, ...] = LIST((), "Prefixes of the names of metrics that clients push, separated by commas; * for all.")
    interval_ms: int = INT(300_000, "The time between two pushes of a client; the shortest of all subscriptions that it matches counts. 100 to 3600000.")
    match: tuple[str, ...] = LIST((), f"Clients that it is for, as ATTRIBUTE=EXPRESSION separated by commas, with an RE2 expression for the whole attribute; empty: all. The attributes are {', '.join(ATTRIBUTES)}.")
# fmt: on


CLIENT_METRICS_SETTINGS: dict[str, Setting] = settings_of(ClientMetricsConfig)


def client_metrics_refusal(overrides: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
    """Why a subscription cannot have these settings; None if it can."""
    for name in overrides:
        if name not in CLIENT_METRICS_SETTINGS:
            known = ", ".join(CLIENT_METRICS_SETTINGS)
            return ErrorCode.INVALID_REQUEST, f"{name[:200]!r} is no setting of client metrics, which have {known}"
    try:
        config = client_metrics_config(overrides)
        for name, items in (("metrics", config.metrics), ("match", config.match)):
            if "" in items:
                raise ConfigError(f"{name} has an empty item between two commas")
        for attribute, expression in match_expressions(config.match).items():
            _compiled(attribute, expression)
    except ConfigError as wrong:
        return ErrorCode.INVALID_CONFIG, str(wrong)
    if not INTERVAL_MIN_MS <= config.interval_ms <= INTERVAL_MAX_MS:
        sentence = f"interval.ms must be {INTERVAL_MIN_MS} to {INTERVAL_MAX_MS} (an hour), not {config.interval_ms}"
        return ErrorCode.INVALID_REQUEST, sentence
    return None


def client_metrics_config(overrides: Mapping[str, str]) -> ClientMetricsConfig:
    """The settings of a subscription; unknown names have no effect. Raises `ConfigError`, though not for an interval
    out of bounds."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        setting = CLIENT_METRICS_SETTINGS.get(name)
        if setting is not None:
            values[setting.field] = setting.parse(text)
    return ClientMetricsConfig(**values)


def match_expressions(match: Sequence[str]) -> dict[str, str]:
    """Attribute -> expression; of two for one attribute the latter counts, as in Kafka. Raises `ConfigError`."""
    expressions: dict[str, str] = {}
    for text in match:
        attribute, _, expression = text.rstrip("=").partition("=")
        attribute = attribute.strip()
        if attribute not in ATTRIBUTES or not expression or "=" in expression:
            names = ", ".join(ATTRIBUTES)
            raise ConfigError(
                f"match must be a list of ATTRIBUTE=EXPRESSION, without commas or = in an expression, not "
                f"{text[:100]!r}; the attributes are {names}"
            )
        expressions[attribute] = expression.strip()
    return expressions


def _compiled(attribute: str, expression: str) -> Any:
    try:
        return compiled(expression, EXPRESSION_BYTES_MAX)
    except ValueError as why:
        raise ConfigError(f"the expression of {attribute} in match cannot be used: {why}") from None


def matchers(match: Sequence[str]) -> list[tuple[str, Any]]:
    """Attributes with the compiled expressions that must match them. Raises `ConfigError`."""
    return [(name, _compiled(name, expression)) for name, expression in match_expressions(match).items()]
