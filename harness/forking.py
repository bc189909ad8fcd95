"""Programs that are forked from a process that has imported them already, in place of `python -m PROGRAM`.

A broker's start is mostly the import of its modules, and tests start hundreds. The process here imports them once, also
those of handlers and coordinators, which a broker imports when a client first needs them; what it forks is a process as
any other, with its own environment, output and exit code. Benchmarks and the long tier start programs as users do.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
PRELOADED = (
    "moldau.cli.app",
    "moldau.cli.main",
    "moldau.cli.server.start",
    "moldau.process",
    "moldau.broker",
    "moldau.cluster.membership",
    "moldau.cluster.joined",
    "moldau.metadata_store.shared_file_session",
    "moldau.replication.exchange",
    "moldau.handlers.between_brokers.of_member",
    "moldau.handlers.producing.produce",
    "moldau.handlers.fetching.fetch",
    "uvloop",
)
AT_START = ("PYTHON", "LD_", "MOLDAU_INTERPRETED", "MALLOC_")
"""Environment variables that count when a process starts or imports: a program with others cannot be forked."""
THREADS = Path("/proc/self/task")
MESSAGE_BYTES_MAX = 1 << 17
ROOM_FOR_A_COMMAND = "-" * 4096
"""The last argument of the process that forks: where what is forked writes its own command line."""
ARGUMENTS_AT = 48
"""The number of the field in /proc/PID/stat with the address of the command line, behind which comes its end."""


class ForkedProcess:
    """As `subprocess.Popen`, with text of the output. At the end of a `with` block it is waited for."""

    def __init__(self, pid: int, status: int, stdout: IO[str]):
        self.pid, self.stdout = pid, stdout
        self.returncode: int | None = None
        self._status = status

    def __enter__(self) -> "ForkedProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.wait()

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        said = os.read(self._status, 16)
        os.close(self._status)
        self.returncode = int(said) if said else -signal.SIGKILL  # the process that forks has died


class Forking:
    """The process that forks, started when it is first needed, and told to end when this process ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._at_start = at_start(os.environ)
        self._control: socket.socket | None = None
        self._one_at_a_time = threading.Lock()

    def can(self, environment: Mapping[str, str]) -> bool:
        """Whether programs with this environment can be forked, and here."""
        return sys.platform == "linux" and at_start(environment) == self._at_start

    def start(
        self,
        program: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stderr: int,
        folder: Path | None = None,
    ) -> ForkedProcess:
        """Run a module with these arguments and this environment in this folder, else in the present one."""
        asked = {"program": program, "arguments": arguments, "environment": dict(environment)}
        asked["folder"] = str(folder or Path.cwd())
        message = json.dumps(asked).encode()
        status, tell_status = os.pipe()
        output, write_output = os.pipe()
        try:
            with self._one_at_a_time:
                pid = self._forked(message, [write_output, stderr, tell_status])
        finally:
            os.close(write_output)
            os.close(tell_status)
        return ForkedProcess(pid, status, open(output))

    def _forked(self, message: bytes, descriptors: Sequence[int]) -> int:
        """The process that was forked for it. Raises `OSError` if the process that forks dies twice."""
        for _ in range(2):
            control = self._started()
            with contextlib.suppress(ConnectionError):  # it is dying, though it may not have ended yet
                socket.send_fds(control, [message], descriptors)
                if pid := control.recv(16):
                    return int(pid)
            control.close()
            assert self._process is not None
            self._process.wait()
        raise ChildProcessError("the process that forks programs for tests dies")

    def _started(self) -> socket.socket:
        if self._process is None or self._process.poll() is not None:
            if self._control is not None:
                self._control.close()
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "harness.forking", str(theirs.fileno()), ROOM_FOR_A_COMMAND],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
            theirs.close()
            atexit.register(self.end)
        assert self._control is not None
        return self._control

    @property
    def pid(self) -> int:
        """Of the process that forks."""
        assert self._process is not None
        return self._process.pid

    def end(self) -> None:
        """What was forked goes on."""
        if self._control is not None and self._process is not None:
            self._control.close()
            self._process.wait()


def at_start(environment: Mapping[str, str]) -> dict[str, str]:
    names = [name for name in environment if name.startswith(AT_START) and name != "PYTHONPATH"]
    return {name: environment[name] for name in names}


def serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork what is asked for, and tell each one's exit code, until the other end of `control` is closed. Returns in
    what was forked with what it is to run; None in the process that forks, at its end."""
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is not control:
                pid, tell_status = key.data
                selector.unregister(key.fileobj)
                os.close(key.fd)
                with open(tell_status, "w") as told, contextlib.suppress(BrokenPipeError):
                    told.write(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                continue
            message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES_MAX, 3)
            if not message:
                return None
            stdout, stderr, tell_status = descriptors
            pid = os.fork()
            if not pid:
                for other in selector.get_map().values():
                    for descriptor in (other.fd, *(other.data or ())[1:]):
                        os.close(descriptor)
                selector.close()
                control.detach()
                os.dup2(stdout, 1)
                os.dup2(stderr, 2)
                for descriptor in (stdout, stderr, tell_status):
                    os.close(descriptor)
                asked: dict[str, Any] = json.loads(message)
                return asked
            os.close(stdout)
            os.close(stderr)
            control.send(str(pid).encode())
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, tell_status))


def preload() -> None:
    """Import all that brokers and commands need, and make the readers and writers of messages."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):  # uvloop may be missing
            importlib.import_module(name)
    from moldau.handlers.table import TABLE
    from moldau.protocol import schema

    for api, row in TABLE.items():
        row.import_all()
        for message in (api.request, api.response):
            empty = bytes(schema.write(message(), api.high, api.is_flexible(api.high)))
            schema.read(message, api.high, api.is_flexible(api.high), empty)


def main() -> None:
    preload()
    gc.collect()
    gc.freeze()
    assert len(os.listdir(THREADS)) == 1, "a thread would be missing in what is forked"
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is None:
        return
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    tempfile.tempdir = None
    time.tzset()
    run(asked["program"], asked["arguments"])


def run(program: str, arguments: Sequence[str]) -> NoReturn:
    """Run a module in this forked process, to its end."""
    show_command([sys.executable, "-m", program, *arguments])
    sys.argv = [program, *arguments]
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        leave(ended.code or 0)
    leave(0)


def show_command(words: Sequence[str]) -> None:
    """Have /proc show these words, as far as there is room, in place of those of the process that forked."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(field) for field in fields[ARGUMENTS_AT - 3 :][:2])
    shown = b"".join(os.fsencode(word) + b"\0" for word in words)[: end - begin - 1]
    ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)


def leave(code: int) -> NoReturn:
    """End as a program does, but for taking down, one by one, all modules that it was forked with."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more, or the program has closed it
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
