"""Which metrics a client is asked for: the subscriptions that match it, put together. Pure.

Of all subscriptions that match, the shortest interval counts and all metrics are asked for; `*` stands for all. The
number of what is asked for tells a client whether that has changed: a CRC of the metrics and the interval, mixed with
the client's id, so that all brokers find the same. Metrics are in the order in which Java's HashSet has them, since
Kafka's number depends on it. Source: KIP-714; what Kafka 4.3.1 answers.
"""

import uuid
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple

from moldau.checksums import crc32c
from moldau.config.client_metrics import ALL_METRICS, ClientMetricsConfig, client_metrics_config, matchers
from moldau.errors import ConfigError

ATTRIBUTE_CHARS_MAX = 1024
"""A longer attribute of a client matches no expression: matching takes time for each of its characters."""
ANSWERS_MAX = 1000
STEPS_OF_A_YIELD = 1000
"""The steps of matching, of up to 10 ns, for which a turn counts one element."""
CHARS_OF_A_YIELD = 100
"""The same for a hash in Python."""
_INT32 = 1 << 32


class ClientMetricsSubscription(NamedTuple):
    """A subscription, ready to match clients. `refusal`: why it cannot be used, and matches none; "" if it can."""

    own: Mapping[str, str]
    config: ClientMetricsConfig
    matchers: list[tuple[str, Any]]
    refusal: str = ""


class AskedMetrics(NamedTuple):
    """The metrics that a client is asked for, none if it matches no subscription, and how often."""

    metrics: tuple[str, ...]
    interval_ms: int

    def number(self, client: uuid.UUID) -> int:
        """The id of the subscription of the client with this id: a signed 32-bit number."""
        text = f"[{', '.join(self.metrics)}]{self.interval_ms}"
        value = crc32c(text.encode("utf-8", "replace")) ^ _java_hash_of_id(client)
        return value - _INT32 if value >= _INT32 >> 1 else value


NOTHING_ASKED = AskedMetrics((), ClientMetricsConfig().interval_ms)


class ClientMetricsSubscriptions:
    """All subscriptions of the cluster. `version` is another one whenever one of them has changed; `refusals` has those
    that cannot be used, as far as clients have asked, and why."""

    def __init__(self) -> None:
        self.version = 0
        self.refusals: dict[str, str] = {}
        self._all: Mapping[str, Mapping[str, str]] = {}
        self._in_order: list[tuple[str, Mapping[str, str]]] = []
        self._asked: dict[tuple[str, ...], AskedMetrics] = {}
        """What those are asked for that match the subscriptions of these names: most clients share a few answers."""
        self._ready: dict[str, ClientMetricsSubscription] = {}

    def follow(self, all_of_them: Mapping[str, Mapping[str, str]]) -> None:
        """These are the subscriptions from now on, by name."""
        if all_of_them is self._all:
            return
        if all_of_them != self._all:
            self.version += 1
            self._ready = {name: one for name, one in self._ready.items() if all_of_them.get(name) == one.own}
            self.refusals = {name: why for name, why in self.refusals.items() if name in self._ready}
            self._asked = {}
        self._all = all_of_them
        self._in_order = sorted(all_of_them.items())

    def asked(self, attributes: Mapping[str, str]) -> Generator[None, None, AskedMetrics]:
        """What a client with these attributes is asked for."""
        matching: list[tuple[str, ClientMetricsConfig]] = []
        answers = self._asked
        for name, own in self._in_order:
            one = self._ready.get(name)
            if one is None or one.own is not own:
                one = self._ready[name] = ready(own)
                if one.refusal:
                    self.refusals[name] = one.refusal
            if (yield from _matches(one, attributes)):
                matching.append((name, one.config))
        names = tuple(name for name, _ in matching)
        if names not in answers:
            asked = yield from _together([config for _, config in matching])
            if len(answers) >= ANSWERS_MAX:
                answers.clear()
            answers[names] = asked
        return answers[names]


def _together(matching: Iterable[ClientMetricsConfig]) -> Generator[None, None, AskedMetrics]:
    metrics: dict[str, int] = {}
    interval_ms = NOTHING_ASKED.interval_ms
    for config in matching:
        interval_ms = min(interval_ms, config.interval_ms)
        for name in config.metrics:
            if name not in metrics:
                metrics[name] = _java_hash(name)
                for _ in range(1 + len(name) // CHARS_OF_A_YIELD):
                    yield
    if ALL_METRICS in metrics:
        return AskedMetrics((ALL_METRICS,), interval_ms)
    return AskedMetrics(_in_java_order(metrics), interval_ms)


def ready(own: Mapping[str, str]) -> ClientMetricsSubscription:
    """The subscription with these settings, of which another broker, or an earlier version, may have thought more."""
    try:
        config = client_metrics_config(own)
        return ClientMetricsSubscription(own, config, matchers(config.match))
    except ConfigError as wrong:
        return ClientMetricsSubscription(own, ClientMetricsConfig(), [], str(wrong))


def _matches(one: ClientMetricsSubscription, attributes: Mapping[str, str]) -> Generator[None, None, bool]:
    yield
    if one.refusal:
        return False
    for attribute, pattern in one.matchers:
        value = attributes[attribute]
        for _ in range(pattern.programsize * len(value) // STEPS_OF_A_YIELD):
            yield
        if len(value) > ATTRIBUTE_CHARS_MAX or not _is_match(pattern, value):
            return False
    return True


def _is_match(pattern: Any, value: str) -> bool:
    try:
        return pattern.fullmatch(value) is not None
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _in_java_order(hashes: Mapping[str, int]) -> tuple[str, ...]:
    """The texts with these hashes as Java's HashSet lists them: by the low bits, as many as its table needs, which
    doubles when it is full to three quarters."""
    places = 16
    while len(hashes) > places * 3 // 4:
        places *= 2
    return tuple(sorted(hashes, key=lambda text: (hashes[text] ^ hashes[text] >> 16) & (places - 1)))


def _java_hash(text: str) -> int:
    """Of Java's String, without a sign."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (value * 31 + (units[at] << 8 | units[at + 1])) % _INT32
    return value


def _java_hash_of_id(client: uuid.UUID) -> int:
    """Of Kafka's Uuid, without a sign."""
    mixed = client.int >> 64 ^ client.int & (1 << 64) - 1
    return (mixed >> 32 ^ mixed) % _INT32
