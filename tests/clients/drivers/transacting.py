"""What clients of confluent-kafka that work in transactions have in common: when to try again, and how they end."""

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException


class Fenced(Exception):
    """Another one has this transactional id, or the producer can go on no more."""


def insist(call: Callable[[], Any]) -> Any:
    """Again, as long as the error says that it can go away."""
    until = time.monotonic() + 60
    while True:
        try:
            return call()
        except KafkaException as failure:
            if not failure.args[0].retriable() or time.monotonic() > until:
                raise
            print("again:", failure.args[0], file=sys.stderr, flush=True)


def say(line: str) -> None:
    print(line, flush=True)


def run(work: Callable[[], None]) -> None:
    """Until its input is closed, or it is fenced: then it ends with code 3."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    try:
        work()
    except (Fenced, KafkaException) as reason:
        print("ends:", reason, file=sys.stderr, flush=True)
        sys.exit(3)
