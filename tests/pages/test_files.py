"""docs/files.md: its commands run in their order, beside the log folder of a stopped Kafka."""

from pathlib import Path

import pytest

from tests.files.inspection.filled import fill
from tests.pages.blocks import blocks_of
from tests.pages.terminal import Terminal


@pytest.mark.check
def test_files_are_shown_checked_taken_over_and_imported(terminal: Terminal, tmp_path: Path) -> None:
    fill(tmp_path / "kafka-logs")
    first, *blocks = [block.code for block in blocks_of("docs/files.md") if block.kind == "console"]
    terminal.play(first)
    terminal.stop()
    for code in blocks:
        terminal.play(code)
    assert (tmp_path / "events.parquet").exists()
