"""The examples of docs/consumer.md and docs/consumer-groups.md do what the pages say."""

import pytest

from harness.pages import run_examples


@pytest.mark.parametrize(("page", "count"), [("consumer.md", 10), ("consumer-groups.md", 5)])
def test_the_examples_of_the_page_run(page: str, count: int, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", bootstrap)
    assert run_examples(page) == count
