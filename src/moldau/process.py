"""A broker as a process of its own: its event loop, limits, signals, standard output and exit code.

Everything that only a real process has is here; `broker.py` is the same in tests and in the simulation.
"""

import asyncio
import contextlib
import errno
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from moldau.broker import Broker
from moldau.collector import Collector
from moldau.config import BrokerConfig, broker_config
from moldau.config.listeners import unauthenticated
from moldau.errors import CannotListen, ConfigError, KafkaError, MoldauError, StartInterrupted, StorageError
from moldau.log.folders.advice import REMEDIES, remedy
from moldau.names import how_to_install
from moldau.notices import log_to_stderr
from moldau.records.columns import COMPILED
from moldau.runtime import Runtime
from moldau.tasks import ended

if TYPE_CHECKING:
    from moldau.cluster.membership import SharedStore

logger = logging.getLogger(__name__)

INTERPRETED = (
    "the columns of this installation run interpreted, many times slower than compiled: take a wheel for this "
    "platform, or install a C compiler and Python's headers, then moldau again"
)
WRONG_SETTINGS = 2
"""The exit code if a setting is unknown or not possible, as for a wrong command line: another start cannot help, and a
service manager can tell it from a failure that may pass."""
AHEAD: Final = (
    "ctypes", "difflib", "shlex", "tokenize", "moldau.handlers.security.quota_guard", "moldau.net.admission",
    "moldau.protocol.messages.fetch", "moldau.protocol.messages.produce",
)  # fmt: skip
"""What a running broker may import late, and not for the first request of an API: for a change of its settings, for a
log line about an error, in a stop. It is imported soon after the start, because an import fails once the process has
no file descriptor left."""
AHEAD_OF_SEVERAL: Final = ("moldau.coordinators.transactions.remote", "moldau.protocol.hot_follower")
"""The same for one of several brokers."""
AHEAD_AFTER_S = 1.0
"""When that begins: later than the first requests."""
SWITCH_INTERVAL_S = 0.0005
"""The longest time the event loop waits for another thread that runs Python code, such as the cleaner's. Python's
default is 5 ms."""


class RunsBeside(Protocol):
    """What runs in the broker's process, in a thread of its own, and is its client. Both methods block."""

    @property
    def title(self) -> str: ...

    @property
    def addresses(self) -> Sequence[str]: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


Beside = Callable[[BrokerConfig, dict[str, int]], RunsBeside]
"""Makes it, from the settings of the broker and the ports of its listeners, once the broker listens."""


def run(
    properties: Mapping[str, str],
    levels: Mapping[str, str] = {},
    accept_empty: Sequence[str] = (),
    beside: Sequence[Beside] = (),
) -> int:
    """`moldau server start` with these settings; `levels` are log levels by logger; `accept_empty` is as in `Broker`.
    Returns the exit code; an error is one sentence on standard error."""
    log_to_stderr()
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    folders, listeners = list[Path](), 1
    try:
        config, warnings = broker_config(properties)
        folders, listeners = [Path(path).absolute() for path in config.data_folders], len(config.client_listeners)
        for warning in warnings:
            logger.warning("%s", warning)
        try:
            import uvloop
        except ImportError:
            return asyncio.run(serve(config, accept_empty, beside))
        return uvloop.run(serve(config, accept_empty, beside))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_SETTINGS
    except (StorageError, KafkaError, MoldauError) as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {_what_failed(error, folders, listeners)}", file=sys.stderr)
    return 1


def _what_failed(error: OSError, folders: Sequence[Path], listeners: int) -> str:
    """A sentence about a listener or a file that the start could not open, and the option that helps."""
    why = str(error.strerror or error)
    if isinstance(error, CannotListen):
        another = "--port chooses another" if listeners == 1 else "change it in listeners"
        return f"{why}: {another}" if error.errno in (errno.EADDRINUSE, errno.EACCES) else why
    if error.filename is None:
        return why
    path = Path(os.fsdecode(error.filename))
    for folder in folders:
        if path == folder or path in folder.parents or folder in path.parents:
            if isinstance(error, FileExistsError | NotADirectoryError):
                return f"{path} is not a folder: --data-dir chooses another data folder"
            inside = "" if path == folder else f" ({path})"
            if error.errno in REMEDIES and not isinstance(error, PermissionError):
                return f"the data folder {folder} cannot be used: {why}{inside}. {remedy(error)} and start again"
            return f"the data folder {folder} cannot be used: {why}{inside}: --data-dir chooses another"
    return f"{path}: {why}"


async def serve(config: BrokerConfig, accept_empty: Sequence[str] = (), beside: Sequence[Beside] = ()) -> int:
    """Run a broker until SIGTERM, Ctrl-C, a terminal that hangs up or the loss of its disk. Returns the exit code."""
    if accept_empty and not config.zookeeper_connect:
        raise ConfigError(
            "--accept-empty is for brokers of a cluster; a standalone broker has `moldau log repair --accept-empty`"
        )
    loop = asyncio.get_running_loop()
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # `nohup` ignores SIGHUP
            loop.add_signal_handler(number, asked_to_stop.set)
    runtime = Runtime()
    broker = Broker(
        config, runtime, descriptors=_descriptors(), shared=shared_store(config, runtime), accept_empty=accept_empty
    )
    if not await _start(broker, asked_to_stop):
        return 0
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    collector = Collector(loop)
    collector.begin()
    broker.watchdog.watch(loop)
    if not COMPILED:
        logger.warning("%s", INTERPRETED)
    for listener in config.client_listeners:
        if (line := unauthenticated(listener, config.of_listener(listener.name).ssl_client_auth)) is not None:
            logger.warning("%s", line)
    _print_line(f"listening on {_addresses(broker)}")
    importing = asyncio.ensure_future(_import_ahead(runtime, is_alone=not config.zookeeper_connect))
    try:
        await _beside(beside, broker, asked_to_stop)
    finally:
        _tell_service_manager("STOPPING=1")
        await ended(importing)
        broker.watchdog.rest()
        collector.end()
        await broker.stop()
    return 1 if broker.failed.is_set() else 0


async def _beside(beside: Sequence[Beside], broker: Broker, asked_to_stop: asyncio.Event) -> None:
    """Wait until the broker has failed or is to stop; meanwhile run what runs beside it."""
    started: list[RunsBeside] = []
    try:
        for make in beside:
            started.append(make(broker.config, broker.ports))
            await asyncio.to_thread(started[-1].start)
            _print_line(f"{started[-1].title} listening on {', '.join(started[-1].addresses)}")
        _tell_service_manager("READY=1")
        await _first_of(asked_to_stop, broker.failed)
    finally:
        await asyncio.gather(*(asyncio.to_thread(other.stop) for other in started))


async def _import_ahead(runtime: Runtime, *, is_alone: bool) -> None:
    await asyncio.sleep(AHEAD_AFTER_S)
    for name in AHEAD if is_alone else AHEAD + AHEAD_OF_SEVERAL:
        with contextlib.suppress(ImportError, OSError):  # it is imported again when it is needed
            await runtime.run(partial(import_module, name))


def shared_store(config: BrokerConfig, runtime: Runtime) -> "SharedStore | None":
    """The store of the cluster that the broker joins; None if it is to be alone. Raises `ConfigError`."""
    if not config.zookeeper_connect:
        return None
    from moldau.cluster.membership import SharedStore
    from moldau.cluster.secret_file import read_secret_file
    from moldau.metadata_store.shared_file_session import SharedFileSession, shared_file

    path, timeout_s = shared_file(config), config.zookeeper_session_timeout_ms / 1000
    secret = read_secret_file(config.cluster_secret_file) if config.cluster_secret_file else b""
    if path is not None:
        return SharedStore(partial(SharedFileSession.open, path, timeout_s, runtime), timeout_s, secret)
    try:
        from moldau.cluster.zookeeper_sessions import ZooKeeperSessions
    except ImportError:
        raise ConfigError(f"zookeeper.connect needs kazoo: {how_to_install('cluster')}") from None
    from moldau.metadata_store.zookeeper_access import access_of

    access = access_of(config, os.environ)
    sessions = ZooKeeperSessions(access, Path(config.data_folders[0]).absolute(), runtime)
    return SharedStore(sessions.open, timeout_s, secret)


def _addresses(broker: Broker) -> str:
    """`HOST:PORT`; if the broker has several listeners, `HOST:PORT (NAME)` of each."""
    listeners = broker.config.client_listeners
    texts = []
    for listener in listeners:
        host = listener.host or "localhost"
        text = f"{f'[{host}]' if ':' in host else host}:{broker.ports[listener.name]}"
        texts.append(f"{text} ({listener.name})" if len(listeners) > 1 else text)
    return ", ".join(texts)


async def _start(broker: Broker, asked_to_stop: asyncio.Event) -> bool:
    """Returns False if the process was asked to stop before the broker listened. Raises what `Broker.start` raises."""
    starting, stopping = asyncio.ensure_future(broker.start()), asyncio.ensure_future(asked_to_stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        broker.interrupt()
    try:
        await starting
    except StartInterrupted as interrupted:
        logger.info("%s", interrupted)
        return False
    finally:
        stopping.cancel()
    return True


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def _descriptors() -> int:
    """The number of files and sockets this process may open, after raising its soft limit to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


def _tell_service_manager(state: str) -> None:
    """systemd waits for it if the unit has `Type=notify`. Source: sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.settimeout(1)
            # "@" stands for the first byte of an abstract name, which an environment variable cannot have.
            manager.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
    except (OSError, ValueError) as error:
        logger.warning("cannot tell the service manager %s (NOTIFY_SOCKET): %s", state, error)


def _print_line(line: str) -> None:
    """If standard output has no reader any more, it becomes /dev/null, and the broker goes on serving."""
    try:
        print(line, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
