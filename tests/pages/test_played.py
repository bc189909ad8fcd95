"""The pages that begin with nothing, played from top to bottom as a newcomer would: README.md, docs/quick-start.md."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from moldau.cli import pipeline_load
from tests.pages.blocks import blocks_of
from tests.pages.terminal import Terminal
from tests.spark import run_example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A_TEST = "# test_"
"""How an example begins that is a test of its own: tests/testing/test_examples.py runs it."""


@contextmanager
def spark_of_these_tests(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(pipeline_load, "_session", lambda stack, master: lambda: spark)
        yield


@pytest.mark.check
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["README.md", "docs/quick-start.md"])
def test_a_newcomer_gets_through_the_page(
    page: str, terminal: Terminal, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    with spark_of_these_tests(spark, monkeypatch):
        for block in blocks_of(page):
            if block.kind == "console":
                terminal.play(block.code)
            elif not block.code.startswith(A_TEST):
                run_example(terminal.here(block.code), {"__name__": "__main__"})
    assert all(command.startswith(("python3 -m venv", "pip install", "make ")) for command in terminal.skipped)
