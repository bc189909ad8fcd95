"""What a command imports before its first request: most of its processor time goes there. Modules are counted, since
seconds depend on the machine; `python -m benchmarks.startup --commands` measures those."""

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from harness.brokers import SOURCE

HEAVY = (
    "argparse", "click", "cryptography", "difflib", "email", "http", "kazoo", "multiprocessing", "pyarrow", "pydantic",
    "pyspark", "rich", "sqlite3", "typer", "unittest", "urllib.request", "uvicorn", "xml", "moldau.broker",
    "moldau.config.broker", "moldau.coordinators", "moldau.handlers", "moldau.log", "moldau.mirror.worker",
    "moldau.pipeline", "moldau.registry", "moldau.replication",
)  # fmt: skip
"""No command below needs these before it asks a broker. Those that begin with `moldau` stand for their parts, too."""
OF_RECORDS = ("produce", "consume", "dead-letters", "perf", "verifiable")
RECORDS = ("moldau.client.consuming", "moldau.client.producing", "moldau.records")
ON_FILES = ("log", "cluster adopt")
OF_FILES = ("sqlite3", "moldau.log")
"""What commands on files need of the others."""
ADMIN_MAX = 75
OURS_MAX = {
    "topics list": ADMIN_MAX,
    "topics create t": ADMIN_MAX,
    "groups describe g": ADMIN_MAX,
    "configs describe topic t": ADMIN_MAX,
    "acls list": ADMIN_MAX,
    "cluster status": ADMIN_MAX,
    "top --once": ADMIN_MAX,
    "doctor": 83,
    "produce t": 115,
    "consume t": 149,
    "dead-letters list t": 150,
    "perf consume t": 141,
    "verifiable produce t": 113,
    "mirror status --from 127.0.0.1:1 --to 127.0.0.1:1": 78,
    "log dump none": 73,
    "log verify none": 95,
    "log repair none": 137,
    "log adopt none": 132,
    "cluster adopt none --zookeeper 127.0.0.1:1": 122,
    "completion bash": 16,
    "log import none --topic t": 136,
}
"""Of each command: the most modules of this package that it may import."""
SCRIPT = f"""
import os, sys
for number, command in enumerate({[*OURS_MAX]}):
    sys.stdout.flush()
    if not (child := os.fork()):
        told = os.dup(1)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        from moldau.cli.main import run
        code = run(command.split())
        os.write(told, " ".join([str(number), str(code), *sys.modules]).encode() + b"\\n")
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def imported() -> Mapping[str, list[str]]:
    """The modules of each command when it has found that no broker answers."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MOLDAU_BOOTSTRAP_SERVER": "127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    modules = {}
    for line in done.stdout.splitlines():
        number, code, *names = line.split()
        command = [*OURS_MAX][int(number)]
        assert code == ("0" if command.startswith("completion") else "1"), line
        modules[command] = names
    return modules


@pytest.mark.parametrize("command", OURS_MAX)
def test_a_command_imports_what_it_needs(command: str, imported: Mapping[str, list[str]]) -> None:
    names = imported[command]
    on_files = command.startswith(ON_FILES)
    heavy = HEAVY if on_files or command.split()[0] in OF_RECORDS else (*HEAVY, *RECORDS)
    if on_files:
        heavy = tuple(name for name in heavy if name not in OF_FILES)
    found = [name for name in names if any(name == one or name.startswith(f"{one}.") for one in heavy)]
    assert found == []
    ours = sum(name.startswith("moldau.") for name in names)
    assert ours <= OURS_MAX[command], f"{ours} modules of ours"
