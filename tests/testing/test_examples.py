"""The examples of docs/testing.md, docs/testing-faults.md, the quick start and the README are run as they stand there,
each as a file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import SOURCE
from harness.patience import stretched
from tests.environments import python_with

ROOT = Path(__file__).parents[2]
FOREIGN = ("aiokafka", "confluent_kafka", "faststream")
PINS = ("faststream[kafka]==0.7.8", "confluent-kafka==2.16.1")
OURS = ("crc32c", "cramjam", "google-re2", "pytest")
"""What the broker and the fixtures need, as pinned in constraints.txt."""
SECONDS_MAX = 100


def examples(page: str) -> dict[str, str]:
    """The Python files on the page: their first line is a comment with their name."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return {name[1]: block for block in blocks if (name := re.match(r"# (test_\w+\.py)\n", block))}


PAGES = ("docs/testing.md", "docs/testing-faults.md", "docs/quick-start.md", "README.md")
EXAMPLES = {(page, name): text for page in PAGES for name, text in examples(page).items()}


def is_foreign(text: str) -> bool:
    return bool(re.search(rf"^(from|import) ({'|'.join(FOREIGN)})\b", text, re.MULTILINE))


def foreign_python() -> Path:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    return python_with(*PINS, *(f"{name}=={pins[name]}" for name in OURS))


def run(command: list[str], folder: Path) -> str:
    """What the tests printed; they must pass."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=stretched(SECONDS_MAX),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_pages_have_their_examples() -> None:
    names = [name for page, name in EXAMPLES if page == "docs/testing.md"]
    assert {"test_confluent_kafka.py", "test_aiokafka.py", "test_faststream.py", "test_unittest.py"} < set(names)
    assert "README.md" in {page for page, _ in EXAMPLES}


def passes(python: Path | str, folder: Path, *names: str) -> None:
    """pytest runs them, once for all of them."""
    options = ["-v", "-p", "no:moldau", "-p", "moldau.testing.plugin", "-p", "no:cacheprovider"]
    said = run([str(python), "-m", "pytest", *options, *names], folder)
    assert all(re.search(rf"^{name}::.* PASSED", said, re.MULTILINE) for name in names), said


def test_the_examples_that_need_only_us_pass(tmp_path: Path) -> None:
    ours = {
        re.sub(r"\W", "_", page) + f"_{name}": text for (page, name), text in EXAMPLES.items() if not is_foreign(text)
    }
    for name, text in ours.items():
        (tmp_path / name).write_text(text)
    [case] = [name for name, text in ours.items() if "MoldauTestCase" in text]
    assert "OK" in run([sys.executable, "-W", "error", "-m", "unittest", "-v", case], tmp_path)
    passes(sys.executable, tmp_path, *(name for name in ours if name != case))


@pytest.mark.check
@pytest.mark.parametrize(("page", "name"), [place for place, text in EXAMPLES.items() if is_foreign(text)])
def test_an_example_with_a_foreign_client_passes(page: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(EXAMPLES[page, name])
    passes(foreign_python(), tmp_path, name)
