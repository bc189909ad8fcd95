"""What SIGTERM and Ctrl-C do to commands that started something, or that wait for work in another language."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau.cli import app, main
from moldau.cli.consuming import reading as consuming
from moldau.cli.terminated import Terminated, killable, terminable
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.offsets import EARLIEST
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from tests.cli.conftest import Moldau
from tests.cli.test_main import started


def ended_by(sign: signal.Signals) -> None:
    with terminable():
        os.kill(os.getpid(), sign)


@pytest.fixture
def _in_the_foreground() -> Iterator[None]:
    """SIGINT is not ignored, as it is in what a shell starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_in_the_foreground")
@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_a_signal_ended_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sign: signal.Signals, code: int
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(app, "run_app", lambda _: ended_by(sign))
    assert main.run(["pipeline", "load"]) == code
    assert capsys.readouterr() == ("", "") and signal.getsignal(signal.SIGTERM) is before


def test_a_command_in_another_thread_leaves_signals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = list[object]()

    def run_app(_: list[str]) -> int:
        handlers.append(signal.getsignal(signal.SIGTERM))
        return 0

    monkeypatch.setattr(app, "run_app", run_app)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(main.run, ["topics", "list"]).result() == 0
    assert handlers == [signal.getsignal(signal.SIGTERM)]


def test_a_second_signal_at_the_very_end_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(app, "run_app", lambda _: 0)

    def leave(code: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        raise SystemExit(code)

    monkeypatch.setattr(sys, "exit", leave)
    try:
        with pytest.raises(SystemExit) as ended:
            main.main(["pipeline", "load"])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert ended.value.code == 0


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_work_that_does_not_hear_of_it(sign: signal.Signals) -> None:
    with terminable():
        before = signal.getsignal(sign)
        with killable():
            assert signal.getsignal(sign) is signal.SIG_DFL
        assert signal.getsignal(sign) is before


@pytest.mark.parametrize("path", [["consume", "t"], ["topics", "list"], ["pipeline", "compact"], ["cluster", "status"]])
def test_every_command_ends_at_sigterm_as_at_ctrl_c(path: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "run_command", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    assert main.run(path) == main.TERMINATED


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_consumer_of_a_group_that_a_signal_ends_commits_and_leaves(
    broker: Broker, topic: str, group: str, sign: signal.Signals, code: int
) -> None:
    with Producer(broker.address) as producer:
        producer.send(topic, b"one")
    options = ["-b", broker.address, "--group", group, "--from-beginning"]
    with started("consume", topic, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == b"one\n"
            with Producer(broker.address) as producer:
                producer.send(topic, b"two")
            assert process.stdout.readline() == b"two\n"
            process.send_signal(sign)  # it may come before the command knows that this was printed
            assert process.wait(stretched()) == code
            assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
        finally:
            process.kill()
    with Admin(broker.address) as admin:
        assert admin.group_offsets(group)[TopicPartition(topic, 0)].offset in (1, 2)
        assert admin.describe_group(group).members == []


def test_a_producer_that_sigterm_ends_says_nothing(broker: Broker, topic: str) -> None:
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started("produce", topic, "-b", broker.address, **pipes) as producing, Consumer(broker.address) as consumer:
        try:
            assert producing.stdin is not None and producing.stderr is not None
            producing.stdin.write(b"one\n")
            producing.stdin.flush()
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek_to({TopicPartition(topic, 0): EARLIEST})
            assert [record.value for record in consumer.poll(round(stretched() * 1000))] == [b"one"]
            producing.send_signal(signal.SIGTERM)
            assert producing.wait(stretched()) == 143
            assert producing.stderr.read() == b""
        finally:
            producing.kill()


def test_records_that_a_signal_kept_from_being_printed_are_not_committed(
    moldau: Moldau, topic: str, group: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: bytes) -> int:
        raise Terminated

    with Producer(broker.address) as producer:
        producer.send(topic, b"one")
    out = SimpleNamespace(buffer=SimpleNamespace(write=interrupted))
    monkeypatch.setattr(consuming, "sys", SimpleNamespace(stdout=out))
    assert moldau("consume", topic, "--group", group, "--from-beginning").code == 143
    with Admin(broker.address) as admin:
        assert admin.group_offsets(group)[TopicPartition(topic, 0)].offset == 0
