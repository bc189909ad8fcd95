"""A plan as a file: Kafka's form, the same bytes for the same plan, and one sentence for a file that is none."""

import json
import os
import stat
from pathlib import Path

import pytest

from moldau.cli.cluster.moving.plan_file import plan_text, read_plan, write_plan
from moldau.errors import ConfigError
from moldau.names import TopicPartition

PLAN = {TopicPartition("b", 0): (3,), TopicPartition("a", 10): (1, 2), TopicPartition("a", 9): (2, 1)}


def test_a_plan_is_sorted_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, PLAN)
    assert read_plan(path) == PLAN
    assert path.read_text() == plan_text(dict(reversed(PLAN.items())))
    rows = json.loads(path.read_text())["partitions"]
    assert rows[0] == {"topic": "a", "partition": 9, "replicas": [2, 1]}
    assert [*tmp_path.iterdir()] == [path]


def test_an_empty_plan_is_one(tmp_path: Path) -> None:
    write_plan(tmp_path / "p", {})
    assert read_plan(tmp_path / "p") == {}


def test_what_kafkas_tool_writes_is_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    row = {"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}
    path.write_text(json.dumps({"version": 1, "partitions": [row]}))
    assert read_plan(path) == {TopicPartition("a", 0): (1, 2)}


ROW = {"topic": "a", "partition": 0, "replicas": [1]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a plan"),
        ('{"partitions": 7}', "is not a plan"),
        (json.dumps({"version": 2, "partitions": []}), "is not a plan"),
        (json.dumps({"partitions": [ROW, ROW]}), "has a-0 twice"),
        *(
            (json.dumps({"partitions": [{**ROW, **wrong}]}), "partition 1 of the list must be")
            for wrong in (
                {"topic": 1},
                {"partition": -1},
                {"partition": True},
                {"partition": 1 << 40},
                {"replicas": []},
                {"replicas": ["1"]},
                {"replicas": [-1]},
                {"replicas": None},
            )
        ),
        (json.dumps({"partitions": [{**ROW, "replicas": [1, 2, 1]}]}), "has a broker twice among its replicas"),
        (json.dumps({"partitions": ["a"]}), "partition 1 of the list must be"),
    ],
)
def test_what_is_no_plan_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        read_plan(path)


def test_files_that_cannot_be_used_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_plan(tmp_path / "none")
    with pytest.raises(ConfigError, match="the plan cannot be written to"):
        write_plan(tmp_path / "none" / "plan.json", PLAN)


def test_a_link_and_a_device_stay_what_they_are(tmp_path: Path) -> None:
    link, real, pipe = tmp_path / "link.json", tmp_path / "real.json", tmp_path / "pipe"
    link.symlink_to(real)
    write_plan(link, PLAN)
    assert link.is_symlink() and read_plan(real) == PLAN
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_plan(pipe, PLAN)
        assert stat.S_ISFIFO(pipe.stat().st_mode) and os.read(reader, 1 << 16).decode() == plan_text(PLAN)
    finally:
        os.close(reader)
