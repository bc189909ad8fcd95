"""A small registry of each test."""

from collections.abc import Iterator

import pytest

from harness.small_registry import SmallRegistry
from moldau.serializers import SchemaRegistry


@pytest.fixture
def small() -> Iterator[SmallRegistry]:
    with SmallRegistry() as small:
        yield small


@pytest.fixture
def registry(small: SmallRegistry) -> SchemaRegistry:
    return SchemaRegistry(small.url)
