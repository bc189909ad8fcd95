"""Real clients and their groups while brokers are added, upgraded, drained, killed and replaced by the recipes of
docs/cluster-operations.md: nothing is missing, nothing doubled, and the groups go on."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.patience import stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.names import TopicPartition
from tests.end_to_end.cluster_pages import ClusterPage
from tests.end_to_end.lasting_groups import LastingGroups, Note, out_of_order
from tests.end_to_end.test_cluster_page import PAGE, THE_CLUSTER
from tests.replicated.audit import Audit, Records
from tests.replicated.senders import PINS, Sender

TOPIC, PARTITIONS = "load", 12
RATE = int(os.environ.get("MOLDAU_RATE", "100"))
"""The records of each producer in a second."""
SECTIONS = (
    "Add a broker",
    "Upgrade broker by broker",
    "Drain a broker",
    "Replace a broker",
    "A disk lost",
    "ZooKeeper lost",
)
READ_S = 120


def _ends(addresses: str) -> dict[int, int]:
    tps = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    with Consumer(addresses) as consumer:
        return {tp.partition: int(end) for tp, end in consumer.end_offsets(tps).items()}


def _log(addresses: str, partition: int, end: int) -> list[Records]:
    lots: list[Records] = []
    with Consumer(addresses, auto_offset_reset="earliest") as consumer:
        tp = TopicPartition(TOPIC, partition)
        consumer.assign([tp])
        while consumer.position(tp) < end:
            taken = consumer.poll(1000)
            lots.append(
                Records(
                    [one.offset for one in taken],
                    [bytes(one.key or b"") for one in taken],
                    [bytes(one.value or b"") for one in taken],
                )
            )
    return lots


@pytest.mark.long
@pytest.mark.timeout(stretched(1200))
def test_nothing_is_missing_or_doubled_and_groups_go_on_while_brokers_come_and_go(tmp_path: Path) -> None:
    with ClusterPage(PAGE, tmp_path) as page, ExitStack() as stack:
        page.play(THE_CLUSTER)
        addresses = page.addresses
        with Admin(addresses) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=3)
        clients = ("ours", *PINS)
        senders = [stack.enter_context(Sender(one, addresses, TOPIC, one, RATE, tmp_path)) for one in clients]
        groups = stack.enter_context(LastingGroups(addresses, TOPIC, tmp_path))
        for section in SECTIONS:
            page.play(section)
            for sender in senders:
                assert sender.progress(), f"{section}: {sender.name} does not go on: {sender.said()}"
            ends = _ends(addresses)
            assert wait_until(lambda ends=ends: not groups.have_read(ends), READ_S), (  # type: ignore[misc]
                f"{section}: {groups.have_read(ends)} do not go on"
            )
            print(f"{section}: {sum(ends.values())} records, read by all groups", flush=True)
        places = {one.name: one.finish(one.acknowledged + 10 * RATE) for one in senders}
        ends = _ends(addresses)
        assert wait_until(lambda: not groups.have_read(ends), READ_S), groups.have_read(ends)
        groups.leave()
        print(*groups.figures(), sep="\n")
        audit = Audit(places)
        for partition, end in ends.items():
            audit.read(partition, _log(addresses, partition, end))
        assert audit.problems() == []
        assert groups.problems(ends) == []
        print({name: len(sent) for name, sent in places.items()})
    assert "Traceback" not in "".join(log.read_text() for log in tmp_path.glob("broker-*.log"))


def test_what_a_member_was_given_again_within_an_assignment_is_found() -> None:
    def told(*notes: Note) -> list[str]:
        return list(out_of_order("m", notes))

    assert told(Note(0, "took", [[0, 5], [1, 0], [0, 6]]), Note(1, "took", [[0, 7]])) == []
    assert told(Note(0, "took", [[0, 5]]), Note(1, "assigned", [0]), Note(2, "took", [[0, 3]])) == []
    assert told(Note(0, "took", [[0, 5], [0, 5]])) == ["m was given offset 5 of partition 0 after 5"]
    assert told(Note(0, "took", [[0, 5]]), Note(1, "took", [[0, 7]])) == ["m was given offset 7 of partition 0 after 5"]
