"""What type checkers say of a user's program in their strict modes, and that it does what they checked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.patience import stretched
from tests.client.typed import application
from tests.environments import node_with, python_with

PROGRAM = Path(application.__file__)
SOURCE = Path(__file__).parents[3] / "src"
SECONDS_MAX = 100


def run(command: list[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=stretched(SECONDS_MAX))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_program_runs() -> None:
    assert application.main() == 0


@pytest.mark.check  # it goes through all of our source
def test_mypy_finds_nothing_in_its_strict_mode(tmp_path: Path) -> None:
    """Untyped libraries such as pyarrow are the program's affair: errors inside of packages are not shown to users."""
    program = tmp_path / PROGRAM.name
    program.write_text(PROGRAM.read_text())
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\nfollow_imports = silent\nmypy_path = {SOURCE}\n")
    run([sys.executable, "-m", "mypy", program], tmp_path)


@pytest.mark.check
@pytest.mark.timeout(450)
def test_pyright_finds_nothing_in_its_strict_mode(tmp_path: Path) -> None:
    """pyarrow has no types of its own; pyright needs its stubs to know what a table is."""
    node, modules = node_with("pyright@1.1.414")
    python = python_with("pyarrow-stubs==20.0.0.20260819", "pyarrow==26.0.1")
    (tmp_path / PROGRAM.name).write_text(PROGRAM.read_text())
    settings = {"include": [PROGRAM.name], "typeCheckingMode": "strict", "extraPaths": [str(SOURCE)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    run([node, modules / "pyright" / "index.js", "--pythonpath", python], tmp_path)
