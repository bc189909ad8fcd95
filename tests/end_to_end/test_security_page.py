"""The page docs/security.md, from nothing to a cluster with TLS, users and access rights, played as it stands there."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.pages import play


@pytest.mark.check
def test_every_step_of_the_page_works(tmp_path: Path) -> None:
    play("security.md", tmp_path)
    audit = tmp_path / "audit.jsonl"
    denied = [json.loads(line) for line in audit.read_text().splitlines()] if audit.exists() else []
    assert not denied, "nothing that the page does is denied"
