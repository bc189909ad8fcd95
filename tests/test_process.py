"""The process of a broker: how it starts, stops and is killed, and what it prints when it cannot start."""

import asyncio
import contextlib
import errno
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import brokers
from harness.brokers import SOURCE, Broker, first_line
from harness.commands import moldau
from harness.patience import stretched, within
from harness.tiers import sized
from moldau import process
from moldau.config import broker_config
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.process import run
from moldau.protocol.apis import (
    CREATE_TOPICS,
    PRODUCE,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.handlers.living import Living, Wire, batch, outcomes, produce, producer_id
from tests.handlers.living import run as alive_on


def properties(folder: Path, port: int = 0) -> dict[str, str]:
    return {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.dirs": str(folder), "node.id": "1"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_cleanly_however_often_it_comes(number: signal.Signals, tmp_path: Path):
    with started(tmp_path) as process:
        assert first_line(process).startswith("listening on ")
        assert not (tmp_path / "data" / CLEAN_MARKER).exists()
        for _ in range(3):
            process.send_signal(number)
        assert process.wait(stretched()) == 0
    assert (tmp_path / "data" / CLEAN_MARKER).exists()


def test_a_signal_in_the_middle_of_the_start_stops_it_cleanly_too(tmp_path: Path):
    with started(tmp_path) as process:
        while not (tmp_path / "data" / ".lock").exists():
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGTERM)
        assert process.wait(stretched()) == 0
    assert (tmp_path / "data" / CLEAN_MARKER).exists()


PARTITIONS = sized(300, 500, 1500)
AFTER_MS = sized((0, 20, 100), (0, 20, 100, 300), (0, 5, 20, 50, 100, 200, 400))
"""When a start is stopped. No verdict depends on how far it has come by then."""


def many_partitions(folder: Path) -> None:
    """A broker's folder with a topic of very many partitions, left by a clean stop."""

    async def make(alive: Living) -> None:
        topic = CreatableTopic(name="many", num_partitions=PARTITIONS, replication_factor=1)
        wire = await alive.dial()
        made = await wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        assert made.topics[0].error_code == 0
        for partition in (0, PARTITIONS // 2, PARTITIONS - 1):
            assert outcomes(await wire.ask(PRODUCE, 9, produce(("many", partition, batch(b"x")))))[0][1] == 0

    alive_on(make, folder / "data")


def ended_while_starting(folder: Path, after_s: float) -> int:
    """The exit code of a start that gets SIGTERM so long after it took the marker of the clean stop."""
    marker = folder / "data" / CLEAN_MARKER
    with started(folder) as process:
        while marker.exists():
            assert process.poll() is None
            os.sched_yield()
        time.sleep(after_s)
        process.send_signal(signal.SIGTERM)
        return process.wait(stretched(60))


def test_a_start_that_is_stopped_at_any_moment_after_a_clean_stop_leaves_the_folder_clean(tmp_path: Path):
    many_partitions(tmp_path)
    for after_ms in AFTER_MS:
        assert ended_while_starting(tmp_path, after_ms / 1000) == 0, after_ms
        assert (tmp_path / "data" / CLEAN_MARKER).exists(), after_ms

    async def look(alive: Living) -> None:
        ends = [alive.replica("many", partition).high_watermark for partition in range(PARTITIONS)]
        assert (ends[0], ends[PARTITIONS // 2], ends[-1], sum(ends)) == (1, 1, 1, 3)

    alive_on(look, tmp_path / "data")


def test_a_signal_before_anything_is_open_ends_the_process_with_success(tmp_path: Path):
    """While the broker's modules are imported, which a busy machine may take long for."""
    program = (
        "import os, signal, sys\n"
        "from moldau.cli.server.start import run_broker\n"
        "class Asked:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'moldau.process':\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Asked())\n"
        f"run_broker(['--data-dir', {str(tmp_path / 'data')!r}, '--port', '0'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(SOURCE)}, timeout=stretched(60)
    )
    assert done.returncode == 0
    assert not (tmp_path / "data").exists()


def test_it_serves_on_when_nobody_reads_what_it_prints(tmp_path: Path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with started(tmp_path, stdout=write_end) as process:
        os.close(write_end)
        while not (tmp_path / "data" / "metadata.sqlite").exists():
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGTERM)
        assert process.wait(stretched()) == 0


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_service_manager_is_told_when_it_serves_and_when_it_stops(is_abstract: bool, tmp_path: Path):
    if is_abstract and sys.platform != "linux":
        return  # only Linux has such names
    path = f"moldau-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{path}" if is_abstract else path)
        manager.settimeout(stretched(60))
        with started(tmp_path, NOTIFY_SOCKET=f"@{path}" if is_abstract else path) as process:
            assert manager.recv(100) == b"READY=1"
            assert first_line(process).startswith("listening on ")
            process.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
            assert process.wait(stretched()) == 0


def test_it_serves_without_the_service_manager_that_it_should_tell(tmp_path: Path):
    with started(tmp_path, NOTIFY_SOCKET=str(tmp_path / "nowhere")) as process:
        assert first_line(process).startswith("listening on ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(stretched()) == 0


@contextlib.contextmanager
def started(
    folder: Path,
    host: str = "127.0.0.1",
    stdout: int = subprocess.PIPE,
    descriptors: int | None = None,
    **environment: str,
) -> Iterator[brokers.Process]:
    """A process that is told to start; it is gone afterwards."""
    command = [sys.executable, "-m", "moldau", "server", "start", "--host", host, "--port", "0"]
    command += ["--data-dir", str(folder / "data")]
    if descriptors:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    whole = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    with open(os.devnull, "w") as nowhere:
        process = (
            brokers.started(command, whole, nowhere)
            if stdout == subprocess.PIPE
            else subprocess.Popen(command, stdout=stdout, stderr=nowhere, text=True, env=whole)
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_an_ipv6_address_is_printed_as_one_can_dial_it(tmp_path: Path):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return  # a machine without IPv6 cannot listen there
    with started(tmp_path, host="::1") as process:
        line = first_line(process).strip()
    assert line.startswith("listening on [::1]:")


def one_sentence(err: str) -> str:
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "Traceback" not in err, err
    return lines[0]


def test_a_second_broker_on_the_same_folder_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    async def scenario(alive: Living) -> None:
        assert await asyncio.to_thread(refused, tmp_path) == 1

    alive_on(scenario, tmp_path)
    assert "another broker uses" in one_sentence(capfd.readouterr().err)


def refused(folder: Path, port: int = 0) -> int:
    """The exit code of a start that has to fail, in a process of its own; it says why on our standard error."""
    done = moldau("server", "start", "--host", "127.0.0.1", "--port", str(port), "--data-dir", folder)
    sys.stderr.write(done.stderr)
    return done.returncode


def test_a_port_in_use_is_said_and_leaves_the_folder_clean(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(properties(tmp_path, port)) == 1
    said = one_sentence(capfd.readouterr().err)
    assert said == f"error: port {port} of 127.0.0.1 is in use by another process: --port chooses another"
    assert (tmp_path / CLEAN_MARKER).exists()


def test_a_data_folder_that_is_none_or_is_not_ours_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.touch()
    for path in (file, file / "below"):
        assert run(properties(path)) == 1
        assert capfd.readouterr().err.splitlines() == [
            f"error: {path} is not a folder: --data-dir chooses another data folder"
        ]

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("moldau.runtime.os.makedirs", refuse)
    assert run(properties(folder)) == 1
    assert capfd.readouterr().err.splitlines() == [
        f"error: the data folder {folder} cannot be used: Permission denied: --data-dir chooses another"
    ]


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.EROFS, "remount it writable"), (errno.ENOSPC, "Free space on its disk")]
)
def test_a_data_folder_on_a_full_or_read_only_disk_is_said_with_what_mends_the_disk(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
):
    folder = tmp_path / "folder"

    def refuse(path: Path, **_: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("moldau.runtime.os.makedirs", refuse)
    assert run(properties(folder)) == 1
    said = one_sentence(capfd.readouterr().err)
    assert said.startswith(f"error: the data folder {folder} cannot be used: {os.strerror(number)}. ")
    assert remedy in said and said.endswith(" and start again") and "--data-dir" not in said


def test_what_was_not_wholly_loaded_is_never_marked_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def use(alive: Living) -> None:
        await alive.make("a")
        alive.replica("a").log.delete_records_before(0)

    alive_on(use, tmp_path)
    assert (tmp_path / CLEAN_MARKER).exists()

    def broken(self: LogFolder, *more: object) -> None:
        raise OSError(errno.EIO, "a read failed")

    monkeypatch.setattr(LogFolder, "_open", broken)
    assert run(properties(tmp_path)) == 1
    assert not (tmp_path / CLEAN_MARKER).exists()
    monkeypatch.undo()
    alive_on(lambda alive: alive.broker.cluster.topics.ensure_offsets_topic(), tmp_path)  # type: ignore[arg-type,return-value]


USERS_OWN = """
broker.id=1
zookeeper.sync.time.ms=2000
process.roles=broker,controller
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={folder}
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_a_server_properties_of_kafkas_starts_with_one_warning_about_settings_not_here(tmp_path: Path):
    file = tmp_path / "server.properties"
    file.write_text(USERS_OWN.format(folder=tmp_path / "data"))
    process = subprocess.Popen(
        [sys.executable, "-m", "moldau", "server", "start", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    try:
        assert first_line(process).startswith("listening on 127.0.0.1:")
    finally:
        process.terminate()
        _, said = process.communicate(timeout=stretched())
    assert process.returncode == 0
    assert sum("zookeeper.sync" in line for line in said.splitlines()) == 1
    assert sum("num.io.threads" in line and "zookeeper.sync" in line for line in said.splitlines()) == 1


def test_a_server_that_serves_anybody_over_the_network_says_so_in_one_line(tmp_path: Path):
    for host, lines in (("0.0.0.0", 1), ("127.0.0.1", 0)):
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau", "server", "start", "--data-dir", tmp_path, "--host", host, "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
        try:
            first_line(process)
        finally:
            process.terminate()
            _, said = process.communicate(timeout=stretched())
        assert sum("NO AUTHENTICATION on the listener PLAINTEXT" in line for line in said.splitlines()) == lines, said


def test_a_server_whose_columns_are_not_compiled_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    for is_compiled, lines in ((False, 1), (True, 0)):
        caplog.clear()
        monkeypatch.setattr(process, "COMPILED", is_compiled)
        monkeypatch.setattr(process, "_print_line", lambda _: os.kill(os.getpid(), signal.SIGTERM))
        assert asyncio.run(process.serve(broker_config(properties(tmp_path))[0])) == 0
        assert [record.message for record in caplog.records].count(process.INTERPRETED) == lines


def test_what_runs_beside_it_is_stopped_at_the_same_time(tmp_path: Path):
    both = threading.Barrier(2)

    class Server:
        title, addresses = "server", ("http://localhost:1",)

        def start(self) -> None:
            pass

        def stop(self) -> None:
            both.wait(stretched())  # broken if the other one is stopped only afterwards

    def last(*_: object) -> Server:
        os.kill(os.getpid(), signal.SIGTERM)
        return Server()

    settings = broker_config(properties(tmp_path))[0]
    assert asyncio.run(process.serve(settings, beside=(lambda *_: Server(), last))) == 0
    assert not both.broken


def test_what_it_may_need_when_no_descriptor_is_left_is_imported_soon_after_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    imported: list[str] = []

    def note(name: str) -> None:
        imported.append(name)
        if name == process.AHEAD[-1]:
            os.kill(os.getpid(), signal.SIGTERM)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(process, "AHEAD_AFTER_S", 0)
    monkeypatch.setattr(process, "import_module", note)
    assert asyncio.run(process.serve(broker_config(properties(tmp_path))[0])) == 0
    assert imported == [*process.AHEAD]
    assert all(importlib.util.find_spec(name) for name in (*process.AHEAD, *process.AHEAD_OF_SEVERAL))


def test_a_flood_of_connections_leaves_the_log_its_descriptors(tmp_path: Path):
    """With few descriptors, connections are refused before a segment could not be opened."""

    async def flood(port: int) -> int:
        streams = await asyncio.gather(*[asyncio.open_connection("127.0.0.1", port) for _ in range(150)])
        served = 0
        for reader, writer in streams:
            wire = Wire(reader, writer)
            try:
                served += await producer_id(wire) >= 0
            except (OSError, asyncio.IncompleteReadError):
                continue
        wire = Wire(*streams[0])
        topic = CreatableTopic(name="a", num_partitions=8, replication_factor=1)
        made = await wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert made.topics[0].error_code == 0
        for partition in range(8):
            assert outcomes(await wire.ask(PRODUCE, 9, produce(("a", partition, batch(b"x")))))[0][1] == 0
        for _, writer in streams:
            writer.transport.abort()
        return served

    with started(tmp_path, descriptors=256) as process:
        port = int(first_line(process).rpartition(":")[2])
        served = asyncio.run(within(flood(port), 60))
        process.terminate()
        assert process.wait(stretched()) == 0
    assert 10 < served < 100


def test_a_broker_of_a_cluster_does_not_begin_another_one_elsewhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With a wrong chroot its records would be in a cluster without topics."""
    store, other = (f"file:{tmp_path / name}" for name in ("cluster.sqlite", "other.sqlite"))
    broker = Broker(tmp_path, {"broker.id": "3", "zookeeper.connect": store})
    broker.start()
    broker.stop()
    lone = properties(tmp_path / "data") | {"node.id": "3", "zookeeper.connect": other}
    capfd.readouterr()
    for _ in range(2):
        assert run(lone) == 1
        said = capfd.readouterr().err.splitlines()[-1]
        assert f"there is no cluster at {other}" in said
        assert f"was at {store}: correct zookeeper.connect" in said
    broker.start()
    broker.stop()
