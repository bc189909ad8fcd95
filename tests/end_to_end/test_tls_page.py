"""The examples of docs/tls.md, one after the other, in a folder of their own."""

from pathlib import Path

from tests.end_to_end.pages import play


def test_every_example_of_the_page_works(tmp_path: Path) -> None:
    play("tls.md", tmp_path)
