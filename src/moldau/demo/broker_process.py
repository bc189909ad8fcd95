"""The demo's broker as a child process: started on a free port, stopped with the demo, and found again after a crash.

The process id is written beside the data, so that a later run can stop the broker of a killed run. A process is stopped
only if its command line names this data folder.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from moldau.errors import MoldauError
from moldau.pipeline.session import python_path

READY_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0


class BrokerNotRunning(MoldauError):
    """The broker did not start, or ended on its own."""


@contextlib.contextmanager
def running_broker(
    data: Path, pid_file: Path, log_file: Path, settings: Sequence[str] = (), *, own_group: bool = False
) -> Iterator[str]:
    """Run a broker on `data` while the block runs, and yield its address. Its log goes to `log_file`.

    `settings` are Kafka's, each as `name=value`. In a process group of its own the broker does not hear Ctrl-C in the
    terminal, so that those who use it end before it does.
    """
    command = [sys.executable, "-m", "moldau", "server", "start", "--host", "127.0.0.1", "--port", "0"]
    command += [word for setting in settings for word in ("--set", setting)]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--data-dir", str(data)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": python_path()},
            process_group=0 if own_group else None,
        )
    pid_file.write_text(f"{process.pid}\n")
    try:
        yield _address(process, log_file)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
        pid_file.unlink(missing_ok=True)


def stop_leftover(data: Path, pid_file: Path) -> bool:
    """Stop the broker that an earlier run left on `data`, if it still runs. Returns whether one was stopped."""
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return False
    if str(data) not in _command_line(pid):
        return False
    os.kill(pid, signal.SIGKILL)
    give_up = time.monotonic() + STOP_SECONDS_MAX
    while str(data) in _command_line(pid) and time.monotonic() < give_up:
        time.sleep(0.05)
    return True


def _address(process: "subprocess.Popen[bytes]", log_file: Path) -> str:
    """Wait for the line `listening on HOST:PORT`; then keep reading, so that the broker never blocks on output."""
    assert process.stdout is not None
    lines: queue.Queue[bytes] = queue.Queue()

    def read() -> None:
        with contextlib.suppress(ValueError):  # closed while reading
            for line in process.stdout or ():
                lines.put(line)
        lines.put(b"")

    threading.Thread(target=read, name="broker-output", daemon=True).start()
    give_up = time.monotonic() + READY_SECONDS_MAX
    while (left := give_up - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left)
        except queue.Empty:
            break
        if not line:  # it has closed its output, so it is about to end
            break
        if line.startswith(b"listening on "):
            return line.decode(errors="replace").removeprefix("listening on ").split()[0]
    said = log_file.read_text(errors="replace").strip().splitlines()
    why = said[-1].removeprefix("error: ") if said else "it said nothing"
    raise BrokerNotRunning(f"The broker did not start: {why} (see {log_file}).")


def _command_line(pid: int) -> str:
    """The command line of a running process, or empty."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        pass
    if Path("/proc/self").exists():
        return ""
    said = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return said.stdout
