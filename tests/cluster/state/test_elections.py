"""Who leads after brokers came, went or lost a log folder."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace

from moldau.cluster.state import elections
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.names import TopicPartition

THERE = (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 9092),)


def image(*partitions: PartitionImage, up: Collection[int] = (1, 2, 3), directories: tuple[str, ...] = ()) -> Image:
    topic = TopicImage("t", uuid.UUID(int=1), partitions, {})
    brokers = {number: BrokerImage(number, THERE, None, directories) for number in up}
    return Image("cluster", 1, brokers).with_topics({"t": topic})


def part(leader: int, epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None) -> PartitionImage:
    return PartitionImage(leader, epoch, replicas, replicas if isr is None else isr)


def elected(
    cluster: Image, away: Collection[int] = (), anew: Mapping[int, Collection[str]] = elections.NOBODY
) -> dict[int, PartitionImage]:
    return {number: partition for _, number, partition in elections.elections(cluster, lambda _: 1, away, anew)}


def nobody(epoch: int, broker: int) -> PartitionImage:
    """The partition while its only replica is away."""
    return part(-1, epoch, (broker,), ())._replace(elr=(broker,))


def test_nothing_changes_while_all_leaders_are_up() -> None:
    assert elected(image(part(1, 4, (1,)), part(2, 0, (2, 3)))) == {}


def test_a_broker_that_went_leads_nothing_and_stays_eligible() -> None:
    assert elected(image(part(1, 4, (1,)), part(2, 0, (2,)), up=[2])) == {0: nobody(5, 1)}
    assert elected(image(nobody(5, 1), up=[2])) == {}, "once"


def test_a_broker_that_is_back_leads_what_it_was_the_last_to_have() -> None:
    assert elected(image(nobody(5, 1))) == {0: part(1, 6, (1,))}
    assert elected(image(part(-1, 5, (1,)))) == {0: part(1, 6, (1,))}, "as earlier versions left it"


def test_the_first_living_replica_in_sync_is_elected_in_the_order_of_assignment() -> None:
    cluster = image(part(3, 1, (3, 2, 1)), part(3, 1, (3, 1, 2), (2, 3)), up=[1, 2])
    assert elected(cluster) == {0: part(2, 2, (3, 2, 1), (2, 1)), 1: part(2, 2, (3, 1, 2), (2,))}


def test_nobody_out_of_sync_is_elected() -> None:
    assert elected(image(part(3, 1, (3, 1), (3,)), up=[1])) == {0: part(-1, 2, (3, 1), ())._replace(elr=(3,))}


def test_a_follower_that_went_leaves_the_isr_and_the_epoch_stays() -> None:
    assert elected(image(part(1, 7, (1, 2)), up=[1])) == {0: part(1, 7, (1, 2), (1,))}


def test_a_silent_broker_counts_as_gone() -> None:
    assert elected(image(part(1, 0, (1,)), part(2, 0, (2,))), away=[1]) == {0: nobody(1, 1)}


def test_a_broker_that_came_back_unnoticed_leads_in_a_new_epoch() -> None:
    assert elected(image(part(1, 4, (1,)), part(2, 4, (2,))), anew={1: {""}}) == {0: part(1, 5, (1,))}


def test_a_partition_whose_log_folder_is_offline_is_not_led_there() -> None:
    lost = part(1, 3, (1,)).with_directory(1, "lost")
    offline = lost._replace(leader=-1, leader_epoch=4, isr=(), elr=(1,))
    assert elected(image(lost, directories=("left",))) == {0: offline}
    assert elected(image(offline, directories=("lost",))) == {0: lost._replace(leader_epoch=5)}
    kept = lost.with_directory(1, "left")
    assert elected(image(kept, directories=("left",))) == {}


def test_elections_come_in_batches_that_make_whole_topics() -> None:
    cluster = image(*[part(1, 0, (1,))] * 1200, up=[])
    batches = list(elections.in_batches(elections.elections(cluster, lambda _: 1)))
    assert [len(batch) for batch in batches] == [500, 500, 200]
    for batch in batches:
        cluster = cluster.with_topics({topic.name: topic for topic in elections.with_elected(cluster, batch)})
    assert all(one == nobody(1, 1) for one in cluster.topics["t"].partitions)


def test_partitions_that_nobody_leads_now_come_first() -> None:
    followed, led = part(1, 0, (1, 3)), part(3, 0, (3, 2))
    found = elections.elections(image(followed, led, up=[1, 2]), lambda _: 1)
    assert [one.number for one in found] == [1, 0]


def test_after_an_unclean_stop_the_only_broker_leads_in_a_new_epoch() -> None:
    cluster = image(part(1, 0, (1,)), part(2, 0, (2,)))
    assert elections.lead_again(cluster, 1, clean=True) == []
    (changed,) = elections.lead_again(cluster, 1, clean=False)
    assert changed.partitions == (part(1, 1, (1,)), part(2, 0, (2,)))


def test_the_only_broker_takes_over_what_nobody_leads_if_it_is_in_sync() -> None:
    (changed,) = elections.lead_again(image(part(-1, 4, (1, 2), (1,)), part(-1, 4, (1, 2), (2,))), 1, clean=True)
    assert [(one.leader, one.leader_epoch) for one in changed.partitions] == [(1, 5), (-1, 4)]


def test_a_log_folder_has_kept_what_it_had_since_the_registration_that_was_dealt_with_last() -> None:
    broker = BrokerImage(1, THERE, None, ("a", "b"))
    assert elections.kept_folders(broker, 17, {"a": [17], "b": [3, 17]}) == {"a", "b", ""}
    assert elections.kept_folders(broker, 17, {"a": [17], "b": [3]}) == {"a"}
    assert elections.kept_folders(broker, 17, {"a": [17]}) == {"a"}
    assert elections.kept_folders(broker, None, {"a": [17], "b": [17]}) == set()
    assert elections.kept_folders(BrokerImage(1, THERE), 17, {}) == set()


def test_a_broker_loses_the_places_in_sync_of_those_folders_only_that_may_have_lost_records() -> None:
    in_a = part(2, 0, (1, 2)).with_directory(1, "a")
    in_b = part(2, 0, (1, 2)).with_directory(1, "b")
    unknown = part(2, 0, (1, 2))
    cluster = image(*[one._replace(leader=-1, isr=(), elr=(1, 2)) for one in (in_a, in_b, unknown)], up=[1])
    after = elected(cluster, anew={1: {"a"}})
    assert (after[0].leader, after[0].isr) == (1, (1,))
    assert [(after[one].leader, after[one].elr, after[one].last_elr) for one in (1, 2)] == [(-1, (2,), (1,))] * 2


def missed(cluster: Image, away: Collection[int] = ()) -> elections.Leaderless | None:
    return elections.leaderless(cluster, away)


def test_partitions_without_a_leader_wait_for_the_brokers_that_were_in_sync_last() -> None:
    lost = part(-1, 5, (1, 3, 4), ())._replace(last_elr=(3, 1))
    cluster = image(part(1, 0, (1,)), nobody(5, 2), nobody(5, 5), lost, up=[1, 4])
    found = missed(cluster)
    assert found == (3, TopicPartition("t", 1), (2, 3, 5), ())
    assert found.remedy == "start brokers 2, 3, 5"
    assert missed(image(nobody(5, 2), up=[1, 2]), away=[2]) == (1, TopicPartition("t", 0), (2,), ())
    assert missed(image(part(-1, 5, (1, 2), ()), up=[1])) == (1, TopicPartition("t", 0), (2,), ())


def test_a_partition_that_can_have_a_leader_waits_for_nobody() -> None:
    assert missed(image(part(1, 0, (1, 2)))) is None
    assert missed(image(part(-1, 0, (1, 2), ())._replace(elr=(1, 2)), up=[2])) is None
    assert missed(image(part(-1, 0, (1, 2), ())._replace(last_elr=(1, 2)))) is None, "the longest log leads"


def test_a_broker_that_is_up_without_the_log_folder_is_missed_for_that() -> None:
    offline = nobody(5, 1).with_directory(1, "lost")
    found = missed(image(offline, nobody(5, 4), directories=("left",)))
    assert found == (2, TopicPartition("t", 0), (4,), (1,))
    assert found.remedy == "start broker 4 and bring back the log folders of broker 1"
    assert found._replace(away=()).remedy == "bring back the log folders of broker 1"


def test_a_broker_that_is_about_to_stop_is_not_missed() -> None:
    cluster = image(nobody(5, 1), nobody(5, 4))
    brokers = {**cluster.brokers, 1: cluster.brokers[1]._replace(leaving=True)}
    assert missed(replace(cluster, brokers=brokers), away=[1]) == (1, TopicPartition("t", 1), (4,), ())


def test_a_line_names_ten_missed_brokers_at_most() -> None:
    found = missed(image(*[nobody(0, broker) for broker in range(10, 1010)]))
    assert found is not None and found.partitions == 1000
    assert found.remedy == f"start brokers {', '.join(map(str, range(10, 20)))} and 990 more"
