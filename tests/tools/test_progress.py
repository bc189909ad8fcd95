"""What a run shows: folders, failures, the slowest, and how to repeat; one worker for each group, the longest first."""

from pathlib import Path

import pytest

from tools.progress import again, folder_of

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]
FILES = {
    "tests/one/test_a.py": """
import pytest
@pytest.mark.parametrize("n", range(3))
def test_fine(n):
    pass
""",
    "tests/one/test_b.py": "def test_bad():\n    assert [] == ['what it was']\n",
}
TOGETHER = """
import os, pathlib, pytest, time

@pytest.mark.together("all")
def test_notes_its_worker():
    time.sleep(0.2)
    pathlib.Path("workers", os.environ["PYTEST_XDIST_WORKER"]).touch()
"""
FILES |= {f"tests/two/test_{name}.py": TOGETHER for name in "cdefgh"}


@pytest.fixture
def lines(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is shown of two folders, of which one has a test that fails."""
    for name, text in FILES.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (pytester.path / "workers").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MOLDAU_TIER", "test")
    options = ("-p", "tools.forks", "-p", "tools.progress", "-p", "no:cacheprovider", "--forks", "2")
    done = pytester.runpytest_subprocess(*options, "tests")
    done.assert_outcomes(passed=9, failed=1)
    assert len(list((pytester.path / "workers").iterdir())) == 1, "six files of one group"
    return done.outlines


def test_each_folder_has_a_line_and_a_failure_one_at_once_and_how_to_repeat_it_at_the_end(lines: list[str]) -> None:
    assert any("10 tests in 2 folders, 2 at a time" in line for line in lines)
    shown = [line for line in lines if " passed" in line and " s of processor time" in line]
    assert len(shown) == 2 and "100%" in shown[-1]
    assert any("one " in line and "3 passed" in line and "1 failed" in line for line in shown)
    assert any("two " in line and "6 passed" in line for line in shown)

    assert sum("FAILED   tests/one/test_b.py::test_bad" in line for line in lines) == 1
    assert lines.count("again: MOLDAU_TIER=test .venv/bin/pytest tests/one/test_b.py::test_bad") == 1
    assert any(line.startswith("FAILED tests/one/test_b.py::test_bad - ") for line in lines)
    slowest = next(i for i, line in enumerate(lines) if "the 10 slowest" in line)
    assert " s of processor time  tests/" in lines[slowest + 1]


def test_names_are_quoted_for_the_shell_and_files_beside_the_folders_are_a_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.tiers.ASKED", None)
    monkeypatch.setenv("MOLDAU_INTERPRETED", "1")
    assert again("tests/a.py::t[a b]") == "MOLDAU_INTERPRETED=1 .venv/bin/pytest 'tests/a.py::t[a b]'"
    assert folder_of("tests/test_x.py::t") == "tests" and folder_of("tests/log/deep/test_x.py::t") == "log"
