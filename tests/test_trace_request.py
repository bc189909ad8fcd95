"""The tool that traces a request: what it prints, and that two runs print the same."""

import re

import pytest

from tools.trace_request import main

MOST = {"Produce": (14, 30, 24), "Fetch": (16, 38, 21), "OffsetCommit": (34, 108, 80)}
"""Files, functions and changes of file. Lower a number when it falls; raise one only with a reason.
Files of their own, without another call: `replication/client_appends.py`, `log/slicing.py`, `log/walking.py`.
OffsetCommit: `coordinators/batching.py` is a file of its own; `GroupShard._answering` says which kind answers;
`CommittedOffsets._settle` tells deletions which commits are on their way to the log; `handlers/groups/committing.py` is
shared with TxnOffsetCommit; `requests/session.py` answers whether the client may read the topic; `Replica.until_free`
lets a log move to another folder; `coordinators/partitioning.py` keeps the partitions of no long keys."""


def test_the_way_of_no_request_becomes_longer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--totals"]) == 0
    totals = r"(\w+) version \d+: (\d+) files, (\d+) functions, (\d+) changes of file, \d+ with returns\n"
    found = {name: tuple(map(int, counts)) for name, *counts in re.findall(totals, capsys.readouterr().out)}
    assert found.keys() == MOST.keys()
    assert {name: counts for name, counts in found.items() if any(map(int.__gt__, counts, MOST[name]))} == {}


def test_the_way_of_a_produce_leads_from_the_server_to_a_segment_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    main(["produce"])
    first = capsys.readouterr().out
    files = [line.split()[1] for line in first.splitlines()[1:]]
    assert files[0] == files[-1] == "net/accepted.py" and "log/segment.py" in files
    main(["produce"])
    assert capsys.readouterr().out == first


def test_a_request_that_is_not_traced_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["Metadata"])
    assert "Metadata" in capsys.readouterr().err
