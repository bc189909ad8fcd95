"""The tool that traces a request: what it prints, and that two runs print the same."""

import re

import pytest

from tools.trace_request import main


def test_each_request_is_shown_with_its_totals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--totals"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [re.match(r"(\w+) version \d+: \d+ files, \d+ functions, \d+ changes of file, \d+ with", x) for x in lines]
    assert [name and name[1] for name in names] == ["Produce", "Fetch", "OffsetCommit"]


def test_the_way_of_a_produce_leads_from_the_server_to_a_segment_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    main(["produce"])
    first = capsys.readouterr().out
    files = [line.split()[1] for line in first.splitlines()[1:]]
    assert files[0] == files[-1] == "net/server.py" and "log/segment.py" in files
    main(["produce"])
    assert capsys.readouterr().out == first


def test_a_request_that_is_not_traced_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["Metadata"])
    assert "Metadata" in capsys.readouterr().err
