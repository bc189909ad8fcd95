"""The examples of docs/streams.md run from the first to the last, and print what stands beneath them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark import run_example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "streams.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n^```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """The examples, each with what it prints, or nothing if the page does not say."""
    return [(code, printed) for code, printed in BLOCK.findall(PAGE.read_text())]


@pytest.mark.check
@pytest.mark.timeout(300)
def test_the_examples_print_what_the_page_says(
    spark: "SparkSession",
    bootstrap: str,
    new_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topics = {name: new_topic(name=name) for name in ("visits", "users")}
    names: dict[str, Any] = {"spark": spark}
    found = examples()
    assert len(found) == 8
    for code, printed in found:
        code = code.replace("localhost:9092", bootstrap).replace('"by-page', f'"{tmp_path}/by-page')
        for name, topic in topics.items():
            code = re.sub(rf'(send\(|"{re.escape(bootstrap)}", )"{name}"', rf'\1"{topic}"', code)
        run_example(code, names)
        said = capsys.readouterr().out.strip()
        assert not printed or said == printed.strip()
