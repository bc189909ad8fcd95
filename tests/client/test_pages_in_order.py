"""The pages for people who write a program in Python, run in the order of docs/index.md against one broker: none of
them finds what another one has left in its topics and groups. docs/schemas.md and docs/streams.md, whose examples need
a registry and Spark, only have topics of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.pages import DOCS, examples
from harness.patience import stretched
from moldau.testing import Broker

PAGES = ("producer.md", "consumer.md", "consumer-groups.md", "columns.md", "admin.md", "coming-from.md")
OTHERS = ("schemas.md", "streams.md", "audit.md")
_TOPIC = re.compile(r'(?:\bsend(?:_many|_table)?|create_topic|NewTopic)\(\s*"([^"]+)"')


def topics_of(page: str) -> set[str]:
    """The topics that the page's examples fill or create."""
    return {name for example in examples(page) for name in _TOPIC.findall(example.code)}


def test_the_index_names_the_pages_in_this_order() -> None:
    places = [(DOCS / "index.md").read_text().index(f"({page})") for page in PAGES]
    assert places == sorted(places)


def test_each_page_has_topics_of_its_own() -> None:
    pages = ("README.md", "quick-start.md", *PAGES, *OTHERS)
    owners: dict[str, str] = {}
    for page in pages:
        found = topics_of(page)
        assert found, page
        shared = {topic: owners[topic] for topic in found if topic in owners}
        assert not shared, f"{page} shares topics with other pages: {shared}"
        owners |= dict.fromkeys(found, page)


def program(page: str) -> str:
    """The page's examples as one program, in the lines that they have in the page."""
    code = ""
    for line, example in examples(page):
        code += "\n" * (line - 1 - code.count("\n")) + example
    return code


def test_the_pages_run_one_after_another_on_one_broker(tmp_path: Path) -> None:
    """Each in a process of its own: a page need not close what it opens."""
    with Broker() as broker:
        for page in PAGES:
            script = tmp_path / f"{Path(page).stem.replace('-', '_')}_page.py"
            script.write_text(program(page).replace("localhost:9092", broker.bootstrap_servers))
            environment = {**os.environ, "MOLDAU_BOOTSTRAP_SERVER": broker.bootstrap_servers}
            done = subprocess.run(
                [sys.executable, script], env=environment, cwd=tmp_path, capture_output=True, text=True,
                timeout=stretched(60),
            )  # fmt: skip
            assert done.returncode == 0, f"{page}: {done.stderr}"
