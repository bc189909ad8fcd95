"""Tab is pressed in bash and zsh, on a terminal, with the script of `moldau completion`."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Moldau

ANSWER_S = 60.0
"""The longest that a shell is waited for; none of them needs a second."""
START = {
    "bash": ["bash", "--noprofile", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
BEFORE = {
    "bash": "bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; source {script}",
    "zsh": "autoload -U compinit && compinit -u -D; source {script}",
}


class Typing:
    """A shell on a terminal of its own, to type into."""

    def __init__(self, shell: str, folder: Path):
        self.shell = shell
        self._us, terminal = pty.openpty()
        environment = {"TERM": "dumb", "HOME": str(folder), "PATH": os.environ["PATH"], "PS1": "$ ", "COLUMNS": "300"}
        self._process = subprocess.Popen(
            START[shell],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(terminal)
        self._seen = ""

    def type(self, text: str) -> None:
        self._seen = ""
        os.write(self._us, text.encode())

    def until(self, pattern: str) -> str:
        """What the shell has shown since the last `type`, when it matches."""
        end_s = time.monotonic() + ANSWER_S
        while not re.search(pattern, self._seen):
            assert select.select([self._us], [], [], end_s - time.monotonic())[0], f"{self.shell}: {self._seen!r}"
            self._seen += os.read(self._us, 65536).decode(errors="replace")
        return self._seen

    def end(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._us)


@pytest.fixture(params=[shell for shell in START if shutil.which(shell)])
def typing(request: pytest.FixtureRequest, offline: Moldau, tmp_path: Path) -> Iterator[Typing]:
    script = tmp_path / "completion"
    script.write_text(offline("completion", request.param).out)
    typing = Typing(request.param, tmp_path)
    try:
        typing.type(BEFORE[request.param].format(script=script) + "; echo read''y\n")
        typing.until(r"ready\r?\n")
        yield typing
    finally:
        typing.end()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("moldau topics delete-r", "delete-records"),
        ("moldau consume --from-b", "--from-beginning"),
        ("moldau consume orders --value-type dou", "double"),
    ],
)
def test_tab_completes(typing: Typing, typed: str, completed: str) -> None:
    typing.type(typed + "\t")
    typing.until(re.escape(completed))
