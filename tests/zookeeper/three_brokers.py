"""Broker processes of one cluster, mostly three, whose loops may be held by a stop."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.brokers import Broker


@contextlib.contextmanager
def three_brokers(
    folder: Path,
    connect: str,
    session_s: float,
    settings: Mapping[str, str] | None = None,
    program: Sequence[str] = ("moldau",),
    before: Callable[[int, Broker], None] = lambda number, broker: None,
    numbers: Sequence[int] = (1, 2, 3),
) -> Iterator[dict[int, Broker]]:
    """Those with these ids; none of them runs afterwards. `program` as in `Broker`; `before` is called
    with each before its first start."""
    brokers = {}
    for number in numbers:
        own = folder / f"broker-{number}"
        own.mkdir()
        each = {
            "broker.id": str(number),
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": str(round(session_s * 1000)),
            "auto.create.topics.enable": "false",
        }
        brokers[number] = Broker(own, {**each, **(settings or {})}, program, may_be_held=True)
    try:
        for number, broker in brokers.items():
            before(number, broker)
            broker.start()
        yield brokers
    finally:
        for broker in brokers.values():
            if broker.runs:
                broker.kill()
