"""Pages about programs that serve: their commands start them, and what the pages say of them is so."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.test_dashboards import TARGET_LABELS
from tests.pages.blocks import blocks_of
from tests.pages.terminal import Terminal

ORDER: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
LONGER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}


def consoles(page: str) -> list[str]:
    return [block.code for block in blocks_of(page) if block.kind == "console" and not block.reason]


@pytest.mark.check
def test_metrics_are_served_where_the_page_says(terminal: Terminal) -> None:
    terminal.play("".join(consoles("docs/metrics.md")))


def test_the_scrape_configuration_has_labels_that_dashboards_ask_for() -> None:
    yaml = pytest.importorskip("yaml")
    [configuration] = [block.code for block in blocks_of("docs/metrics.md") if block.kind == "yaml"]
    [job] = yaml.safe_load(configuration)["scrape_configs"]
    for target in job["static_configs"]:
        assert {*target["labels"]} <= TARGET_LABELS
        assert target["targets"][0].partition(":")[2] == "9404"


@pytest.mark.check
def test_the_console_and_the_registry_serve_as_their_pages_say(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.play("$ moldau server start --data-dir data\n")
    for page in ("docs/console.md", "docs/console-access.md", "docs/registry.md"):
        Path("order.avsc").write_text(json.dumps(ORDER))
        Path("longer.avsc").write_text(json.dumps(LONGER))
        monkeypatch.setenv("MOLDAU_SCHEMA_REGISTRY", terminal.here("http://localhost:8081"))
        for code in consoles(page):
            terminal.play(code)
    with urllib.request.urlopen(terminal.here("http://localhost:8090/")) as page_of_console:
        assert b"Moldau" in page_of_console.read()
