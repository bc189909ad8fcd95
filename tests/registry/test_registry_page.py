"""docs/registry.md: its examples run in their order, against a registry that the command starts."""

import os
import subprocess
import sys

from harness.brokers import SOURCE
from harness.pages import examples
from harness.patience import stretched
from moldau.testing import Broker


def test_every_example_of_the_page_runs() -> None:
    with Broker() as broker:
        command = [sys.executable, "-m", "moldau", "registry", "start", "-b", broker.address, "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                url = process.stdout.readline().removeprefix("listening on ").strip()
                assert url.startswith("http://localhost:"), url
                names: dict[str, object] = {"__name__": "example"}
                for line, code in examples("registry.md"):
                    exec(compile(code.replace("http://localhost:8081", url), f"registry.md:{line}", "exec"), names)
            finally:
                process.terminate()
            assert process.wait(stretched(30)) == 0


def test_a_broker_that_does_not_answer_at_the_start_is_waited_for() -> None:
    with Broker() as broker:
        broker.kill()
        command = [sys.executable, "-m", "moldau", "registry", "start", "-b", broker.address, "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None and process.stdout is not None
                assert "cannot connect" in process.stderr.readline()
                broker.start()
                assert process.stdout.readline().startswith("listening on http://localhost:")
            finally:
                process.kill()
