"""From the command to the first acknowledged Produce into an empty folder, and the memory after ten idle seconds.

`python -m benchmarks.startup --commands` measures the other commands: the processor time of all threads from the start
of the process until its first request arrives, or until it ends if it asks nobody. Compile the source before
(`python -m compileall -q src`), as pip does.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.broker_load import Case, new_topic
from harness.listening import free_port

RUNS = 5
IDLE_S = 10
COMMANDS = (
    "--version", "--help", "topics list", "topics create t", "topics describe t", "topics offsets t", "produce t",
    "consume t", "groups list", "groups describe g", "configs describe topic t", "transactions list", "users list",
    "quotas list", "acls list", "tokens list", "cluster status", "cluster log-dirs", "cluster api-versions",
    "perf produce t", "perf consume t", "verifiable produce t", "dead-letters list t", "mirror status",
    "mirror start --topics t", "top", "doctor", "schemas list", "completion bash", "log dump none", "log verify none",
    "log repair none", "log adopt none", "log import none --topic t", "cluster adopt none --zookeeper localhost:1",
)  # fmt: skip
OF_A_MIRROR = ("--from", "--to")
START = "from moldau.cli.main import main; main()"


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def seconds_to_first_ack(command: Sequence[str], port: int, idle: bool) -> tuple[float, float]:
    """(seconds, resident MB after the idle time or 0)."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                new_topic(port)
                break
            except (ConnectionError, EOFError):
                assert process.poll() is None, "the broker left"
                time.sleep(0.002)
        took = time.perf_counter() - began
        if not idle:
            return took, 0.0
        time.sleep(IDLE_S)
        return took, resident_mb(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def cases() -> Iterator[Case]:
    times = []
    for run in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            command = [sys.executable, "-m", "moldau", "server", "start", "--host", "127.0.0.1"]
            command += ["--port", str(port), "--data-dir", f"{folder}/data"]
            took, memory = seconds_to_first_ack(command, port, idle=run == RUNS - 1)
            times.append(took)
    yield Case(f"command to first acknowledged Produce, median of {RUNS}", sorted(times)[RUNS // 2], "s")
    yield Case(f"resident memory after {IDLE_S} s idle", memory, "MB")


def processor_s(pid: int) -> float:
    """The processor time that all threads of a process have used."""
    texts = [(task / "schedstat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(text.split()[0]) for text in texts) / 1e9


def before_the_first_request(command: str) -> float:
    """Processor time in seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        words = command.split()
        if words[0] == "mirror":
            words += [word for option in OF_A_MIRROR for word in (option, address)]
        if words[0] == "schemas":
            words += ["--schema-registry", f"http://{address}"]
        process = subprocess.Popen(
            [sys.executable, "-c", START, *words],
            env={**os.environ, "MOLDAU_BOOTSTRAP_SERVER": address},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            while True:
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                        continue
                    usage = os.wait4(process.pid, 0)[2]
                    process.returncode = 0
                    return usage.ru_utime + usage.ru_stime
                with connection:
                    if connection.recv(1):  # the doctor connects before it asks
                        return processor_s(process.pid)
        finally:
            process.kill()
            process.wait()


def command_cases(runs: int = RUNS) -> Iterator[Case]:
    for command in COMMANDS:
        times = sorted(before_the_first_request(command) for _ in range(runs))
        yield Case(f"moldau {command}, median of {runs}", times[runs // 2], "s of processor time")


if __name__ == "__main__":
    for case in command_cases() if "--commands" in sys.argv[1:] else cases():
        print(f"{case.name}: {case.value:.3f} {case.unit}")
