"""`MoldauTestCase`: a broker for the tests of a unittest class."""

import itertools
import unittest
from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.testing.broker import Broker

_numbers = itertools.count(1)


class MoldauTestCase(unittest.TestCase):
    """`self.broker` runs for all tests of the class, and is `reset` after each of them. For coroutines inherit from
    `unittest.IsolatedAsyncioTestCase` too."""

    broker: ClassVar[Broker]
    broker_settings: ClassVar[Mapping[str, object]] = {}
    """Settings of the broker, in Kafka's names."""

    broker_security: ClassVar[Mapping[str, Any]] = {}
    """How it is protected: `tls`, `users` and `acls`, as `Broker` takes them."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.broker = Broker(cls.broker_settings, **cls.broker_security).start()
        cls.addClassCleanup(cls.broker.stop)

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.broker.reset)

    def new_topic(self, partitions: int = -1, **configs: object) -> str:
        """The name of a new topic, called after the test; the rest as in `Broker.create_topic`."""
        name = f"{self.id().rpartition('.')[2]}-{next(_numbers)}"
        return self.broker.create_topic(name, partitions, replication_factor=1, **configs)
