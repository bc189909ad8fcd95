"""The examples of docs/producer.md, run against a broker."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client.administration.admin import Admin
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.names import TopicPartition
from moldau.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "producer.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def test_every_example_of_the_page_runs_and_its_records_arrive(address: str) -> None:
    for example in EXAMPLES:
        exec(compile(example.replace("localhost:9092", address), str(PAGE), "exec"), {"__name__": "example"})
    with Admin(address) as admin:
        topics = set(admin.list_topics())
    assert {"rivers", "rivers-copied", "measured", "measured-raw", "accounts"} <= topics
    counts = {}
    for topic in ("rivers-copied", "measured", "measured-raw", "accounts"):
        tp = TopicPartition(topic, 0)
        end = list_offsets(address, {tp: LATEST})[tp]
        counts[topic] = sum(rows.num_rows for rows in read_columns(address, topic, 0, 0, end))
    assert counts["rivers-copied"] > 5
    assert (counts["measured"], counts["measured-raw"], counts["accounts"]) == (1, 1, 2)
