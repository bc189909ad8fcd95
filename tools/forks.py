"""Workers that are forked from the process that has collected the tests (a plugin of pytest, for Linux).

usage: python -m pytest -p tools.forks --forks 4 tests

Workers of pytest-xdist are processes of their own: each imports all tests, and tells its controller of each step of
each test. Here tests are imported once, a worker begins with all of them in memory, and sends the reports of a test
together. Groups of tests (a file, or what has the marker `together`) go to the workers one by one: to every second
worker from the front, to the others from the back (tools/ordering.py). A worker that dies fails the test that it ran,
and another one takes its place.
"""

import atexit
import contextlib
import itertools
import mmap
import os
import signal
import struct
import sys
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from tools.durations import file_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

WORKER = "MOLDAU_TEST_WORKER"
"""The process that is a worker, in its environment."""
LOOK_S = 1.0
"""How often it is looked whether a worker has ended whose end of the pipe some other process holds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="how many workers to fork")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    workers = session.config.getoption("forks")
    if not workers or session.testsfailed or session.config.option.collectonly:
        return None
    return Forks(session, groups(session.items)).run(workers)


def group_of(item: pytest.Item) -> str:
    """What goes to one worker together."""
    marker = item.get_closest_marker("together")
    return str(marker.args[0]) if marker else file_of(item.nodeid)


def groups(items: Sequence[pytest.Item]) -> list[list[int]]:
    """The numbers of the tests of each group, in the order in which groups begin."""
    found: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        found.setdefault(group_of(item), []).append(number)
    return list(found.values())


class Passed(NamedTuple):
    """The report of a step that passed without a word: thousands do."""

    when: Literal["setup", "call", "teardown"]
    duration: float
    start: float
    stop: float
    properties: list[tuple[str, object]]

    def report(self, item: pytest.Item) -> pytest.TestReport:
        return pytest.TestReport(
            item.nodeid, item.location, {}, "passed", None, self.when, (), self.duration, self.start, self.stop,
            self.properties,
        )  # fmt: skip


Told = Passed | dict[str, Any]
"""What a worker tells of a step."""


class Worker:
    """A worker as the process that forked it sees it. Both share the number of the test that runs."""

    def __init__(self, number: int, running: mmap.mmap, connection: "Connection", pid: int):
        self.number, self.connection, self.pid = number, connection, pid
        self.group: list[int] = []
        """What it was given and has not told of."""
        self._running = running

    @property
    def running(self) -> int | None:
        [number] = struct.unpack("q", self._running[:8])
        return None if number < 0 else int(number)


class Forks:
    def __init__(self, session: pytest.Session, waiting: list[list[int]]):
        self._session, self._config = session, session.config
        self._waiting = deque(waiting)
        self._workers: list[Worker] = []
        self._temporary = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self._started = 0

    def run(self, workers: int) -> bool:
        """True: pytest's own loop has nothing left to do."""
        try:
            for _ in range(min(workers, len(self._waiting))):
                if not self._start():
                    return True
            while self._workers:
                for worker in self._ready():
                    if self._has_died(worker) and not self._start():
                        return True
        except BaseException:
            for worker in self._workers:
                worker.connection.close()  # one whose test takes the signal for its own ends with the next report
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGINT)
            for worker in self._workers:
                os.waitpid(worker.pid, 0)
            raise
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)
        return True

    def _start(self) -> bool:
        """Fork a worker. Returns False in the worker, when it has done its work."""
        number, running = self._started, mmap.mmap(-1, 8)
        running[:8] = struct.pack("q", -1)
        self._started += 1
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            theirs.close()
            self._workers.append(Worker(number, running, ours, pid))
            return True
        for connection in (ours, *(other.connection for other in self._workers)):
            connection.close()
        self._workers.clear()
        become_worker(self._config, number, self._temporary / f"worker-{number}")
        Work(self._session, theirs, running).run()
        return False

    def _ready(self) -> Iterator[Worker]:
        """Workers that have something to say, or have ended."""
        by_connection = {worker.connection: worker for worker in self._workers}
        ready = wait(list(by_connection), LOOK_S)
        for worker in self._workers if not ready else [by_connection[one] for one in ready]:  # type: ignore[index]
            if ready or has_ended(worker.pid):
                yield worker

    def _has_died(self, worker: Worker) -> bool:
        """Take what a worker says, or its end; returns whether it died in the middle of its work."""
        try:
            said = worker.connection.recv() if worker.connection.poll() else None
        except (EOFError, ConnectionResetError):
            said = None
        if said is None:
            return self._ended(worker)
        if said == "next":
            stops = self._session.shouldfail or self._session.shouldstop
            take = self._waiting.pop if worker.number % 2 else self._waiting.popleft
            worker.group = take() if self._waiting and not stops else []
            with contextlib.suppress(BrokenPipeError):  # it has died meanwhile
                worker.connection.send(worker.group)
        else:
            self._take(worker, *said)
        return False

    def _take(self, worker: Worker, number: int, reports: list[Told], warned: list[tuple[Any, ...]]) -> None:
        hook, item = self._config.hook, self._session.items[number]
        worker.group = [one for one in worker.group if one != number]
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for told in reports:
            if isinstance(told, Passed):
                report = told.report(item)
            else:
                report = hook.pytest_report_from_serializable(config=self._config, data=told)
            hook.pytest_runtest_logreport(report=report)
        for category, text, file, line, when, nodeid, location in warned:
            message = warnings.WarningMessage(Warning(f"{category}: {text}"), Warning, file, line)
            hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
            )
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _ended(self, worker: Worker) -> bool:
        self._workers.remove(worker)
        worker.connection.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(worker.pid, 0)
        if (number := worker.running) is not None:
            item, hook = self._session.items[number], self._config.hook
            text = f"worker {worker.number} died while it ran {item.nodeid}"
            for outcome, why, when in (("failed", text, "call"), ("passed", None, "teardown")):
                report = pytest.TestReport(item.nodeid, item.location, {}, outcome, why, when)  # type: ignore[arg-type]
                hook.pytest_runtest_logreport(report=report)
        if left := [one for one in worker.group if one != number]:
            self._waiting.appendleft(left)
        has_died = bool(left) or number is not None
        return has_died and bool(self._waiting) and not (self._session.shouldfail or self._session.shouldstop)


def has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


codes: list[int] = []
"""How a process of ours ends, once that is known."""


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if session.config.getoption("forks"):
        codes.append(int(exitstatus))


@atexit.register
def leave() -> None:
    """The last that a worker does, and the process that forked it: an interpreter that is finalized takes down one by
    one all that was collected, for seconds."""
    if os.environ.get(WORKER) == str(os.getpid()):
        codes.append(0)
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[-1])


class Silent:
    """Stands in for pytest's reporter in a worker: what it writes of its own goes to standard error."""

    def __init__(self, writer: Any):
        self._tw = writer


def become_worker(config: pytest.Config, number: int, temporary: "os.PathLike[str]") -> None:
    """What pytest-xdist gives its workers: a folder for temporary files, captured output, and nothing that reports."""
    os.environ[WORKER] = str(os.getpid())
    config.workerinput = {"workerid": f"gw{number}"}  # type: ignore[attr-defined]
    os.environ["PYTEST_XDIST_WORKER"] = f"gw{number}"
    plugins = config.pluginmanager
    for name in ("terminalreporter", "moldau-progress"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    from _pytest.config import create_terminal_writer  # what a time-out writes stacks with

    plugins.register(Silent(create_terminal_writer(config, sys.stderr)), "terminalreporter")
    capture: Any = plugins.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.option.basetemp = str(temporary)
    factory = pytest.TempPathFactory.from_config(config, _ispytest=True)
    config._tmp_path_factory = factory  # type: ignore[attr-defined]


class Work:
    """What a worker does: it asks for groups until there is none, and tells the reports of each test."""

    def __init__(self, session: pytest.Session, connection: "Connection", running: mmap.mmap):
        self._session, self._connection, self._running = session, connection, running
        self._reports: list[Told] = []
        self._warned: list[tuple[Any, ...]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.longrepr is None and not report.sections and not hasattr(report, "wasxfail"):
            properties = list(report.user_properties)
            self._reports.append(Passed(report.when, report.duration, report.start, report.stop, properties))
            return
        config = self._session.config
        self._reports.append(config.hook.pytest_report_to_serializable(config=config, report=report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        one = warning_message
        self._warned.append((one.category.__name__, str(one.message), one.filename, one.lineno, when, nodeid, location))

    def run(self) -> None:
        session = self._session
        session.config.pluginmanager.register(self, "moldau-work")
        self._warned.clear()  # pytest has just repeated the warnings of the collection
        item = None
        factory: Any = session.config._tmp_path_factory  # type: ignore[attr-defined]
        whole = factory.getbasetemp()
        for number in itertools.count():
            if not (group := self._next()):
                break
            factory._basetemp = whole / str(number)  # what makes a folder in it looks at the names of all others
            factory._basetemp.mkdir(0o700)
            # Behind a group comes the session in the place of a test: fixtures of files end, those of the session stay.
            for test, after in zip(group, [*(session.items[one] for one in group[1:]), session], strict=True):
                item = session.items[test]
                self._running[:8] = struct.pack("q", test)
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                self._tell(test)
                if session.shouldfail or session.shouldstop:
                    break
        if item is not None:
            self._end(item)

    def _next(self) -> list[int]:
        self._connection.send("next")
        group: list[int] = self._connection.recv()
        return group

    def _tell(self, number: int) -> None:
        self._connection.send((number, self._reports, self._warned))
        self._reports, self._warned = [], []
        self._running[:8] = struct.pack("q", -1)

    def _end(self, item: pytest.Item) -> None:
        """End the fixtures of the session; what fails there is an error of the last test."""
        end = lambda: self._session._setupstate.teardown_exact(None)  # noqa: E731
        call = pytest.CallInfo.from_call(end, "teardown")
        if call.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            item.ihook.pytest_runtest_logreport(report=report)
            self._tell(self._session.items.index(item))
