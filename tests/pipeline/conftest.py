"""Marks the tests that use Spark, and lets their JVMs start quickly."""

from tests.spark import pytest_itemcollected, quick_jvms

__all__ = ["pytest_itemcollected", "quick_jvms"]
