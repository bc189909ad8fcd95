"""The tool that installs a checkout in other systems. Making the systems belongs to the long tier: `make machines`."""

import re
import subprocess
from datetime import date

import pytest

from tools import machines
from tools.machines import MACHINES, PAGE, STEPS, TABLE, Result, main, table

DAY = date(2026, 11, 27)


def test_every_machine_runs_steps_that_there_are() -> None:
    assert [step for machine in MACHINES for step in machine.steps if step not in STEPS] == []
    for script in STEPS.values():
        assert subprocess.run(["bash", "-n", "-c", script]).returncode == 0


def test_the_table_has_a_cell_for_each_step_and_the_step_that_failed_in_capitals() -> None:
    one = Result("Debian 13", "gcc 14.2.0", "3.13.5", "compiled", {"pip install .": 21.4, "make quick": None}, DAY)
    lines = table([one]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[-1] == "| Debian 13 | gcc 14.2.0 | 3.13.5 | compiled | 21 s | - | - | - | FAILED | 2026-11-27 |"
    assert one.failed


def test_the_page_has_a_row_for_each_machine_and_none_that_failed() -> None:
    (shown,) = TABLE.findall(PAGE.read_text())
    rows = [row.strip("|").split("|") for row in shown.splitlines()[2:]]
    assert [row[0].strip() for row in rows] == [machine.system for machine in MACHINES]
    for row, machine in zip(rows, MACHINES, strict=True):
        ran = [step for step, cell in zip(STEPS, row[4:-1], strict=True) if re.fullmatch(r" \d+ s ", cell)]
        assert ran == [step for step in STEPS if step in machine.steps]


@pytest.mark.parametrize(
    ("user", "absent", "sentence"),
    [(1000, "", "needs root"), (0, "debootstrap", "debootstrap was not found: install it, for example with 'apt-get")],
)
def test_what_the_machine_lacks_is_said_in_a_sentence(
    user: int, absent: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machines.os, "geteuid", lambda: user)
    monkeypatch.setattr(machines.shutil, "which", lambda name: None if name == absent else f"/usr/bin/{name}")
    assert main([MACHINES[0].name]) == 1
    assert sentence in capsys.readouterr().err


def test_an_unknown_machine_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["debian-4"])
    assert "there is no machine debian-4" in capsys.readouterr().err
