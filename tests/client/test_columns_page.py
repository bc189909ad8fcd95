"""The examples of docs/columns.md, run one after another against a broker."""

import re
from pathlib import Path

import pytest

import moldau
from moldau.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "columns.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_runs_and_reads_what_was_sent(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        with moldau.Admin(address) as admin:
            admin.create_topic("stations", configs={"retention.ms": "-1"})
        names: dict[str, object] = {}
        for example in EXAMPLES:
            names = {"__name__": "example"}
            exec(compile(example.replace("localhost:9092", address), str(PAGE), "exec"), names)
            if "of_may" in names:
                read = names
        json = moldau.read_table("levels-json", address)["value"].to_pylist()
    assert json == [b'{"cm":31}', b'{"cm":212}']
    assert names["rows"] == 7 and capsys.readouterr().out.endswith("7 0\n")
    found = {name: len(read[name]) for name in ("everything", "of_may", "by_offset", "frame")}  # type: ignore[arg-type]
    assert found == {"everything": 7, "of_may": 2, "by_offset": 2, "frame": 7}
