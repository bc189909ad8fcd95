"""Kafka's tools print of our three brokers what they printed of three brokers of Kafka 4.3.1."""

from pathlib import Path

import pytest

from harness.patience import stretched
from tests.clients.cluster_tools import kafkas, ours
from tests.clients.cluster_tools.recorded import differences, recorded
from tests.clients.cluster_tools.script import comparable, play
from tests.clients.kafka_tools import Tools

pytestmark = pytest.mark.timeout(stretched(600))


@pytest.mark.check
def test_kafkas_tools_operate_our_cluster_as_they_operate_kafkas(tmp_path: Path) -> None:
    with Tools(tmp_path, kafkas.VERSION) as tools, ours.running(tmp_path) as brokers:
        assert list(differences(recorded(), play(brokers, tools, tmp_path))) == []


@pytest.mark.long
def test_kafka_itself_answers_what_is_recorded(tmp_path: Path) -> None:
    with Tools(tmp_path, kafkas.VERSION) as tools, kafkas.running() as brokers:
        asked = dict(play(brokers, tools, tmp_path))
    assert asked == recorded()


def test_what_is_drawn_has_names_and_everything_else_is_compared(tmp_path: Path) -> None:
    said = f"Topic: t\tTopicId: x1\tLeader: 2\tIsr: 3,1\n\n\tat org.x\n127.0.0.1:77 {tmp_path}/1/a {tmp_path}/1/c"
    assert comparable(said, tmp_path) == [
        "Topic: t\tTopicId: ID\tLeader: 2\tIsr: 1,3",
        "ADDRESS ROOT/1/FOLDER ROOT/1/c",
    ]
    assert comparable(f"{tmp_path}/1/b", tmp_path, places=True) == ["ROOT/1/b"]
    plan = '{"partitions": [{"replicas": [3, 1], "log_dirs": ["any", "any"]}], "version": 1}'
    assert comparable(plan, tmp_path) == ['{"partitions": [{"log_dirs": ["any", "any"], "replicas": 2}], "version": 1}']


def test_a_difference_names_its_step_and_an_accepted_one_must_still_be_one() -> None:
    known = {"same": ["1"], "other": ["1"], "elect a preferred leader that is dead": ["1"], "left": ["1"]}
    found = [("same", ["1"]), ("other", ["2"]), ("elect a preferred leader that is dead", ["1"]), ("new", ["1"])]
    assert list(differences(known, found)) == [
        "other: differs\n  - 1\n  + 2",
        "elect a preferred leader that is dead: now the same",
        "new: not recorded",
        "left: was not asked",
    ]
