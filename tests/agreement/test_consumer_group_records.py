"""Kafka's decoder reads every record that consumer groups (KIP-848) leave in the offsets topic."""

import base64
import json
from pathlib import Path
from typing import Any

from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.records.batch import encode_batch
from tests.agreement.dumping import DumpTool
from tests.coordinators.consumer.scene import consumer_settings, topic_id
from tests.coordinators.groups.scene import Actor, Stage

PLAY = """
topic t 3
beat a epoch=0 instance=i assignor=range
beat b epoch=0 expression=t.?
beat a epoch=2 owns=t-0+t-1+t-2
beat a epoch=2 owns=t-0+t-1
beat b epoch=3
commit b id=b gen=3 t-2=7
beat a epoch=-2 instance=i
beat b epoch=-1
leave x instance=i
delete d g
"""
KINDS = {"1", "3", "5", "6", "7", "8", "16"}


def value_of(payload: str) -> Any:
    return None if payload == "<DELETE>" else json.loads(payload)


def test_every_kind_of_record_is_decoded(tool: DumpTool, tmp_path: Path) -> None:
    stage = Stage(GroupCoordinatorSettings(consumer=consumer_settings({})))
    actor = Actor(stage)
    for line in PLAY.strip().splitlines():
        actor.play(line)
    file = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    file.parent.mkdir()
    file.write_bytes(bytes(encode_batch([(record.key, record.value, 1, []) for record in stage.log])))

    dump = tool.dump([file], "--offsets-decoder")
    assert dump.complaints == []
    found = [(json.loads(one["key"]), value_of(one["payload"])) for one in dump.records()]
    assert len(found) == len(stage.log)
    assert {key["type"] for key, _ in found} == KINDS
    assert {key["type"] for key, value in found if value is None} == KINDS
    values = {(key["type"], key["data"].get("memberId", "")): value["data"] for key, value in found if value}
    id_of_t = base64.urlsafe_b64encode(topic_id("t").bytes).decode().rstrip("=")
    assert values["5", "a"]["instanceId"] == "i"
    assert (values["5", "a"]["serverAssignor"], values["5", "b"]["subscribedTopicRegex"]) == ("range", "t.?")
    assert values["7", "b"]["topicPartitions"] == [{"topicId": id_of_t, "partitions": [2]}]
    given = [{"topicId": id_of_t, "partitions": [2], "assignmentEpochs": [3]}]
    assert (values["8", "b"]["memberEpoch"], values["8", "b"]["assignedPartitions"]) == (3, given)
    assert values["6", ""]["assignmentEpoch"] == values["3", ""]["epoch"] == 5
