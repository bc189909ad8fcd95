"""What a registry imports until it serves: nearly all of its start goes there."""

import os
import subprocess
import sys

from harness.brokers import SOURCE

NOT_NEEDED = (
    "google.protobuf", "http.client", "jsonschema_rs", "pyarrow", "moldau.broker",
    "moldau.client.producing.async_producer", "moldau.config", "moldau.http.tls", "moldau.registry.authentication",
    "moldau.registry.avro", "moldau.registry.json_schema", "moldau.registry.protobuf",
)  # fmt: skip
PROGRAM = """
import sys
from moldau.cli.main import run
run(["registry", "start", "-b", "127.0.0.1:1", "--host", "no-such-host.invalid"])
import uvicorn.server
print(*sys.modules)
"""


def test_a_registry_imports_nothing_that_its_first_answer_does_not_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    names = done.stdout.split()
    assert "moldau.registry.server" in names
    assert [name for name in names if any(name == one or name.startswith(f"{one}.") for one in NOT_NEEDED)] == []
