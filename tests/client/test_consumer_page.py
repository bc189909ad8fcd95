"""The examples of docs/consumer.md do what the page says."""

import pytest

from harness.pages import run_examples


def test_the_examples_of_the_page_run(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", bootstrap)
    assert run_examples("consumer.md") == 14
