"""docs/admin.md: its examples run, in their order, and its tables name methods that exist."""

import re
from pathlib import Path

from moldau.client.administration.admin import Admin
from moldau.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "admin.md"


def test_every_example_of_the_page_runs() -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) >= 7
    with Broker() as broker:
        names: dict[str, object] = {"__name__": "example"}
        for example in examples:
            exec(compile(example.replace("localhost:9092", broker.bootstrap_servers), str(PAGE), "exec"), names)


def test_the_tables_name_every_method_and_no_other() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)\(", row)}
    public = {name for name in vars(Admin) if not name.startswith("_")} - {"close", "configs", "transactions"}
    elsewhere = {"topic_configs", "alter_topic_configs", "list_offsets", "offsets", "watermarks", "delete_records"}
    assert named == public - elsewhere
    assert all(f"{name}" in PAGE.read_text() for name in elsewhere)
