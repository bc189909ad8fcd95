"""The verdict on a run: what the senders were told against what the brokers serve, and have on their disks."""

from array import array
from collections.abc import Iterator, Mapping

from harness.brokers import Broker
from moldau.client.administration.admin import Admin
from moldau.client.fetching import read_columns
from tests.replicated.audit import Audit, Records
from tests.replicated.on_disk import assert_replicas_are_equal

COLUMNS = ("offset", "key", "value")


def assert_kept(brokers: Mapping[int, Broker], topic: str, places: Mapping[str, "array[int]"]) -> None:
    """All that was acknowledged is where it was acknowledged, once and in order; the replicas are equal, and no broker
    was surprised. Stops the brokers."""
    audit, address = Audit(places), next(iter(brokers.values())).address
    with Admin(address) as admin:
        ends = {tp.partition: end for tp, (_, end) in admin.watermarks(topic).items()}
    for partition, end in ends.items():
        audit.read(partition, _lots(address, topic, partition, end))
    problems = audit.problems()
    assert not problems, "\n".join(problems)
    for broker in brokers.values():
        broker.stop()
    assert_replicas_are_equal(brokers.values(), topic, ends)
    for number, broker in brokers.items():
        assert not (traceback := broker.traceback()), f"broker {number}: {traceback}"


def _lots(address: str, topic: str, partition: int, end: int) -> Iterator[Records]:
    for columns in read_columns(address, topic, partition, 0, end, columns=COLUMNS):
        yield Records(*(columns.column(name).to_pylist() for name in COLUMNS))
