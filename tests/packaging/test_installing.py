"""What users install: a wheel, and the source package where there is no compiler, each in an environment of its own."""

import itertools
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.pages import examples
from tests.packaging.building import ROOT, built, checkout, compiler
from tools.machines import FIRST_MESSAGE

SECONDS_MAX = 15
"""From nothing to a test that has passed, with the packages in pip's cache. Of processor time, which an idle machine
takes by the clock, too."""
pytestmark = pytest.mark.timeout(600)


def run(command: Sequence[str | Path], folder: Path, **more: str) -> str:
    """What it says, as a user who knows nothing of this checkout would run it."""
    ours = ("PYTHON", "MOLDAU", "PYTEST", "COV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | more
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr  # pip -v shows what a build says on the latter


def seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.long
def test_a_fresh_environment_comes_from_its_wheel_to_a_test_that_has_passed_in_fifteen_seconds(tmp_path: Path) -> None:
    wheel = built("wheel", checkout(tmp_path / "sources"), **compiler(tmp_path))
    folder = tmp_path / "user"
    folder.mkdir()
    (folder / "test_round_trip.py").write_text(examples("testing.md")[0].code)
    (folder / "constraints.txt").write_text((ROOT / "constraints.txt").read_text())
    install = ["env/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt"]

    def timed() -> list[tuple[float, float]]:
        """Seconds, and seconds of processor time, of each step."""
        marks = [(time.monotonic(), seconds_of_children())]
        for command in (
            [sys.executable, "-m", "venv", "--clear", "env"],
            [*install, wheel, "pytest"],
            ["env/bin/pytest", "-q", "test_round_trip.py"],
        ):
            said = run(command, folder)
            marks.append((time.monotonic(), seconds_of_children()))
        assert "1 passed" in said
        return [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(marks)]

    timed()  # now the packages are in pip's cache
    made, installed, tested = steps = timed()
    by_clock, used = (sum(step[kind] for step in steps) for kind in (0, 1))
    print(
        f"from nothing to a test that has passed: {by_clock:.1f} s, {used:.1f} s of processor time "
        f"(venv {made[1]:.1f}, pip install {installed[1]:.1f}, pytest {tested[1]:.1f})"
    )
    assert run(["env/bin/moldau", "version"], folder).strip().endswith("(columns compiled)")
    assert used <= SECONDS_MAX


@pytest.mark.long
def test_the_source_package_is_installed_without_a_compiler_and_says_so_in_a_sentence(tmp_path: Path) -> None:
    package = built("sdist", checkout(tmp_path / "sources"), MOLDAU_INTERPRETED="1")
    python = tmp_path / "env" / "bin" / "python"
    run([sys.executable, "-m", "venv", "env"], tmp_path)
    install = [python, "-m", "pip", "install", "--verbose", "--constraint", ROOT / "constraints.txt", package]
    said = run(install, tmp_path, CC="/bin/false", LDSHARED="/bin/false")
    assert "records/columns is not compiled and will run interpreted" in said
    assert run([python, "-m", "moldau", "version"], tmp_path).strip().endswith("(columns interpreted)")
    run([python, "-c", FIRST_MESSAGE], tmp_path)
