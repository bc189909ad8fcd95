"""The examples of docs/testing.md and of the README are run as they stand there, each as a file of its own; those for
pytest that need no other client share a process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import SOURCE
from harness.patience import stretched
from tests.environments import python_with
from tests.versions import CONFLUENT, FASTSTREAM

ROOT = Path(__file__).parents[2]
FOREIGN = ("aiokafka", "confluent_kafka", "faststream")
OURS = ("crc32c", "cramjam", "google-re2", "pytest")
"""What the broker and the fixtures need, as pinned in constraints.txt."""
SECONDS_MAX = 100
OPTIONS = ("-q", "-p", "no:moldau", "-p", "moldau.testing.plugin", "-p", "no:cacheprovider")


def examples(page: str) -> dict[str, str]:
    """The Python files on the page: their first line is a comment with their name."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return {name[1]: block for block in blocks if (name := re.match(r"# (test_\w+\.py)\n", block))}


EXAMPLES = {(page, name): text for page in ("docs/testing.md", "README.md") for name, text in examples(page).items()}


def is_foreign(text: str) -> bool:
    return bool(re.search(rf"^(from|import) ({'|'.join(FOREIGN)})\b", text, re.MULTILINE))


def foreign_python() -> Path:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    return python_with(FASTSTREAM, CONFLUENT, *(f"{name}=={pins[name]}" for name in OURS))


def is_alone(text: str) -> bool:
    return is_foreign(text) or "MoldauTestCase" in text


def run(command: list[str], folder: Path) -> tuple[int, str]:
    """The exit code, and what the tests printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=stretched(SECONDS_MAX),
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of each test of the examples that share a process."""
    folder = tmp_path_factory.mktemp("examples")
    shared = {name: text for (_, name), text in EXAMPLES.items() if not is_alone(text)}
    assert len(shared) == sum(not is_alone(text) for text in EXAMPLES.values()), "two examples have one name"
    for name, text in shared.items():
        (folder / name).write_text(text)
    return run([sys.executable, "-m", "pytest", *OPTIONS, "-rA", *shared], folder)[1]


def test_the_pages_have_their_examples() -> None:
    names = [name for page, name in EXAMPLES if page == "docs/testing.md"]
    assert {"test_confluent_kafka.py", "test_aiokafka.py", "test_faststream.py", "test_unittest.py"} < set(names)
    assert "README.md" in {page for page, _ in EXAMPLES}


@pytest.mark.parametrize(
    ("page", "name"),
    [pytest.param(*place, id="-".join(place)) for place, text in EXAMPLES.items() if not is_alone(text)],
)
def test_an_example_passes(page: str, name: str, together: str) -> None:
    ends = re.findall(rf"^(\w+) {re.escape(name)}\b", together, re.MULTILINE)
    assert ends and {*ends} == {"PASSED"}, together


@pytest.mark.parametrize(
    ("page", "name"),
    [
        pytest.param(*place, marks=[pytest.mark.check] if is_foreign(text) else [], id="-".join(place))
        for place, text in EXAMPLES.items()
        if is_alone(text)
    ],
)
def test_an_example_of_unittest_or_of_another_client_passes(page: str, name: str, tmp_path: Path) -> None:
    text = EXAMPLES[page, name]
    (tmp_path / name).write_text(text)
    python = str(foreign_python()) if is_foreign(text) else sys.executable
    unittest, pytest_ = ["-W", "error", "-m", "unittest", "-v"], ["-m", "pytest", *OPTIONS]
    code, said = run([python, *(unittest if "MoldauTestCase" in text else pytest_), name], tmp_path)
    assert code == 0 and ("OK" in said or "passed" in said), said
