"""The pages for people who write a program in Python, run in the order of docs/index.md against one broker: none of
them finds what another one has left in its topics and groups. docs/schemas.md and docs/streams.md, whose examples need
a registry and Spark, only have topics of their own."""

import re

import pytest

from harness.pages import DOCS, examples
from moldau.testing import Broker

PAGES = ("producer.md", "consumer.md", "columns.md", "admin.md", "coming-from.md")
OTHERS = ("schemas.md", "streams.md", "audit.md")
_TOPIC = re.compile(r'(?:\bsend(?:_many|_table)?|create_topic|NewTopic)\(\s*"([^"]+)"')


def topics_of(page: str) -> set[str]:
    """The topics that the page's examples fill or create."""
    return {name for example in examples(page) for name in _TOPIC.findall(example.code)}


def test_the_index_names_the_pages_in_this_order() -> None:
    places = [(DOCS / "index.md").read_text().index(f"({page})") for page in PAGES]
    assert places == sorted(places)


def test_each_page_has_topics_of_its_own() -> None:
    pages = ("README.md", *PAGES, *OTHERS)
    owners: dict[str, str] = {}
    for page in pages:
        found = topics_of(page)
        assert found, page
        shared = {topic: owners[topic] for topic in found if topic in owners}
        assert not shared, f"{page} shares topics with other pages: {shared}"
        owners |= dict.fromkeys(found, page)


def test_the_pages_run_one_after_another_on_one_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", broker.bootstrap_servers)
        for page in PAGES:
            names: dict[str, object] = {"__name__": "__main__"}
            for line, code in examples(page):
                code = "\n" * (line - 1) + code.replace("localhost:9092", broker.bootstrap_servers)
                exec(compile(code, str(DOCS / page), "exec"), names)
