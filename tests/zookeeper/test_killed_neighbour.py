"""What the logs of brokers say about a neighbour that was killed."""

from pathlib import Path

from harness.patience import wait_until
from harness.zookeeper import ZooKeeper
from moldau import Admin
from tests.zookeeper.test_brokers import bootstrap, cluster


def test_a_killed_controller_and_leader_is_one_warning_of_each_survivor(tmp_path: Path, single: ZooKeeper) -> None:
    with cluster(tmp_path, single) as brokers:
        with Admin(bootstrap(brokers)) as admin:
            killed = admin.describe_cluster().controller_id
            others = [number for number in brokers if number != killed]
            admin.create_topic("t", assignment={0: [killed, *others]})
            assert wait_until(lambda: {*admin.describe_topics(["t"])["t"].partitions[0].isr} == {*brokers})
        logs = {number: tmp_path / str(number) / "broker.log" for number in others}
        begin = {number: len(log.read_text()) for number, log in logs.items()}

        def lines(number: int) -> list[str]:
            """What broker `number` has said since of the one that was killed."""
            said = logs[number].read_text()[begin[number] :].splitlines()
            names = brokers[killed].address, f"broker {killed} ", "the controller cannot"
            return [line for line in said if any(name in line for name in names)]

        brokers[killed].kill()
        assert wait_until(lambda: all(map(lines, others)))
        with Admin(",".join(brokers[number].address for number in others)) as admin:
            assert wait_until(lambda: admin.describe_topics(["t"])["t"].partitions[0].leader in others)
        for number in others:
            first, *more = lines(number)
            assert f" WARNING broker {killed} cannot be reached: " in first
            assert "other brokers take over what it leads" in first
            assert all("more like this since the last line" in line for line in more), lines(number)
