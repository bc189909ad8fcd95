"""Lines for the operator: one of a kind and place in a while, and how many there were."""

import logging
import sys

import pytest

from moldau import notices
from moldau.notices import EVERY_S, Notices, OneLine


class HandTime:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_one_line_of_a_kind_and_place_is_written_in_a_while_and_the_next_counts_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = HandTime()
    said = Notices(logging.getLogger("disk"), now)
    for number in range(5):
        said.error("a-0", "%s failed: %d", "a-0", number)
        said.error("b-0", "%s failed: %d", "b-0", number)
        said.error("a-0", "%s is gone", "a-0")
    assert caplog.messages == ["a-0 failed: 0", "b-0 failed: 0", "a-0 is gone"]
    now.s += EVERY_S
    said.error("a-0", "%s failed: %d", "a-0", 5)
    assert caplog.messages[3:] == ["a-0 failed: 5 (4 more like this since the last line)"]
    now.s += EVERY_S
    said.error("a-0", "%s failed: %d", "a-0", 6)
    assert caplog.messages[4:] == ["a-0 failed: 6"]


def test_a_warning_is_limited_as_an_error_is(caplog: pytest.LogCaptureFixture) -> None:
    said = Notices(logging.getLogger("disk"), HandTime())
    for _ in range(2):
        said.warning("a-0", "%s is late", "a-0")
        said.error("a-0", "%s is gone", "a-0")
    written = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert written == [("WARNING", "a-0 is late"), ("ERROR", "a-0 is gone")]


def test_few_places_are_remembered(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(notices, "PLACES_MAX", 10)
    said = Notices(logging.getLogger("disk"), HandTime())
    for number in range(100):
        said.error(str(number), "failed")
    assert len(caplog.messages) == 100 and len(said._written) == 10
    said.error("99", "failed")
    assert len(caplog.messages) == 100


def test_a_notice_has_the_level_that_its_method_is_called(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    said = Notices(logging.getLogger("net"), HandTime())
    for _ in range(2):
        said.info("host", "closed")
        said.error("host", "failed")
    assert [(one.levelname, one.message) for one in caplog.records] == [("INFO", "closed"), ("ERROR", "failed")]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("app\n2026-11-28 ERROR forged", r"app\x0a2026-11-28 ERROR forged"),
        ("app\r\x1b[2J", r"app\x0d\x1b[2J"),
        ("a\u2028b\u202ec\x9b", r"a\u2028b\u202ec\x9b"),
        ("Bär, ä'\\", "Bär, ä'\\"),
    ],
)
def test_what_clients_send_makes_no_line_of_its_own(sent: str, shown: str) -> None:
    line = OneLine("%(levelname)s %(message)s")
    record = logging.LogRecord("moldau", logging.INFO, "f.py", 1, "client %s is slow", (sent,), None)
    assert line.format(record) == f"INFO client {shown} is slow"
    try:
        raise ValueError("wrong")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert "\nTraceback" in line.format(record)
