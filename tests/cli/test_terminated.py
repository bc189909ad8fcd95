"""What SIGTERM and Ctrl-C do to commands that started something, or that wait for work in another language."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from moldau.cli import app, main
from moldau.cli.terminated import killable, terminable


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


def test_ctrl_c_ends_work_that_does_not_hear_of_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    with killable():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before
