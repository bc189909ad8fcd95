"""What these tests share: how long they go on, from which seed, and which clients `make check` has."""

import pytest

from harness.tiers import seed_or, sized

KILLS = sized(3, 3, 50)
OLDER = ("confluent-2.8", "kafka-python-2")
STRUCK_IN_CHECK = ("ours", "confluent", "java")
"""Clients whose brokers are killed in `make check`; of the others in `make long`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not item.nodeid.startswith("tests/clients/transactions/"):
            continue
        asked = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if "client" not in asked:
            continue
        if asked["client"] in OLDER or (asked.get("broker") == 3 and asked["client"] not in STRUCK_IN_CHECK):
            item.add_marker(pytest.mark.long)


@pytest.fixture
def seed() -> int:
    """`MOLDAU_SEED` repeats a run; the long tier draws another each time."""
    return seed_or(6)
