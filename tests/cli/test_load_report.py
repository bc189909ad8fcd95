"""What a load says while it runs: lines of commits, notes of failures, and the line that moves in a terminal."""

import io
import json
import sys

import pytest

from harness.patience import wait_until
from moldau.cli.load_report import CLEAR_LINE, ContinuousReport, print_loaded, progress_line
from moldau.errors import ErrorCode, KafkaError
from moldau.pipeline.loading.progress import LoadProgress
from moldau.pipeline.loading.settings import Commit, Loaded
from moldau.pipeline.tables.maintenance import Compacted

LOADED = Loaded((Commit("flights", 7, 2, 4210, 2_500_000, 3),), 0.5)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_commit_a_compaction_and_the_end_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    report = ContinuousReport(as_json=False)
    report.committed(LOADED, {"flights": 12})
    report.committed(Loaded(), {"flights": 0})
    report.compacted("flights", Compacted(50, 1))
    report.failed(KafkaError(ErrorCode.NETWORK_EXCEPTION, "no broker answers."), 2.0)
    report.stopped()
    said = capsys.readouterr()
    assert [line.partition(" ")[2] for line in said.out.splitlines()] == [
        "flights version 7: 4,210 records, 2.5 MB in 0.5 s, 3 in quarantine, lag 12",
        "flights: compacted, 50 files became 1",
        "stopped after 1 commit: 4,210 records, 2.5 MB",
    ]
    assert said.err == "no broker answers; next attempt in 2 s\n"


def test_commits_of_one_topic_add_up_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    commits = (Commit("flights", 7, 2, 10, 100, 0, 1), Commit("flights", 8, 1, 5, 50, 0, 2), Commit("x", 1, 1, 1, 1, 0))
    print_loaded(Loaded(commits[:1], 0.5).and_then(Loaded(commits[1:], 0.5)), True, "q")
    said = json.loads(capsys.readouterr().out)
    assert (said["records"], said["deleted"], said["seconds"]) == (16, 3, 1.0)
    assert said["tables"]["flights"] == {"version": 8, "records": 15, "deleted": 3, "files": 3}


def test_programs_get_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    report = ContinuousReport(as_json=True)
    report.committed(LOADED, {})
    report.stopped()
    commit, stopped = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (commit["event"], commit["topic"], commit["records"], commit["rejected"]) == ("commit", "flights", 4210, 3)
    assert commit["lag"] is None, "the broker did not say"
    assert (stopped["event"], stopped["commits"], stopped["bytes"]) == ("stopped", 1, 2_500_000)


def test_a_terminal_shows_a_line_that_is_gone_when_the_load_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, progress = Terminal(), LoadProgress()
    progress.begin(1000)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_line(progress):
        assert wait_until(lambda: "0 records, 0.0 MB, lag 1,000, " in terminal.getvalue())
        progress.end()
        assert wait_until(lambda: "0 records, 0.0 MB, lag 0, " in terminal.getvalue())
    assert terminal.getvalue().endswith(CLEAR_LINE)


def test_nothing_moves_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line(LoadProgress()):
        pass
    assert capsys.readouterr() == ("", "")
