"""Members of one group, of each assignor and protocol: who reads what, who is told what, and what is committed."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.brokers import Broker
from harness.patience import Deadline, wait_until
from harness.proxy import Proxy
from moldau import aio, testing
from moldau.client.administration.admin import Admin
from moldau.errors import (
    CommitFailed,
    FencedInstanceId,
    InconsistentGroupProtocol,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from moldau.names import OffsetAndMetadata, TopicPartition
from tests.client.group_members import CLASSIC, COOPERATIVE, FAST, KINDS, NEWER, Group, Member, create, fill
from tests.clients.referee import KafkaBroker, of_its_own

EACH_KIND = pytest.mark.parametrize("kind", list(KINDS))
BOTH_PROTOCOLS = pytest.mark.parametrize("kind", ["cooperative-sticky", "sticky", "consumer"])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker | KafkaBroker]:
    """Ours, or Apache Kafka (`MOLDAU_TEST_BROKER=kafka`)."""
    started = of_its_own(tmp_path_factory.mktemp("broker"), FAST)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def together(bootstrap: str, group: str) -> Iterator[Group]:
    made = Group(bootstrap, group)
    yield made
    for member in made.members:
        member.consumer.close()


@EACH_KIND
def test_members_that_come_and_go_read_every_record_once(
    together: Group, bootstrap: str, topic: str, kind: str
) -> None:
    create(bootstrap, topic, 6)
    sent = fill(bootstrap, topic, 6, range(60))
    first = together.joins(topic, **KINDS[kind])
    together.until(lambda: len(first.values) == 60)
    together.joins(topic, **KINDS[kind])
    together.until(together.shares(3, 3))
    sent += fill(bootstrap, topic, 6, range(60, 120))
    together.joins(topic, **KINDS[kind])
    together.until(together.shares(2, 2, 2))
    sent += fill(bootstrap, topic, 6, range(120, 180))
    together.until(lambda: len(together.values) >= 180)
    together.leaves(first)
    together.until(together.shares(3, 3))
    sent += fill(bootstrap, topic, 6, range(180, 240))
    together.until(lambda: len(together.values) >= 240)
    assert together.values == sent
    assert all(member.heard("lost") == [] for member in together.members)


@BOTH_PROTOCOLS
def test_members_give_up_only_what_moves_unless_they_are_eager(
    together: Group, bootstrap: str, topic: str, kind: str
) -> None:
    everything = create(bootstrap, topic, 4)
    first = together.joins(topic, **KINDS[kind])
    together.until(together.shares(4))
    second = together.joins(topic, **KINDS[kind])
    together.until(together.shares(2, 2))
    moved = sorted(everything) if kind == "sticky" else sorted(second.owned)
    assert first.heard("revoked") == moved
    together.leaves(second)
    together.until(together.shares(4))
    kept = 3 if kind == "sticky" else 1
    times = {tp: 2 if tp in second.heard("assigned") else kept for tp in everything}
    expected = sorted(tp for tp, count in times.items() for _ in range(count))
    together.until(lambda: len(first.heard("assigned")) >= len(expected))  # the listener is called in the next poll
    assert first.heard("assigned") == expected
    assert second.heard("revoked") == second.heard("assigned")


def test_partitions_that_stay_are_read_on_while_the_group_waits_for_a_slow_member(
    together: Group, bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic, 4)
    first, slow = together.joins(topic, **COOPERATIVE), together.joins(topic, **COOPERATIVE)
    together.until(together.shares(2, 2))
    late = together.joins(topic, **COOPERATIVE)
    sent = fill(bootstrap, topic, 4, range(40))
    together.until(lambda: len(first.values) == 20, without=(slow,))
    assert late.owned == set(), "the group waits for the slow member"
    first.consumer.commit()
    sent += fill(bootstrap, topic, 4, range(40, 80))
    together.until(lambda: len(first.values) == 40, without=(slow,))
    assert late.owned == set()
    together.until(lambda: len(together.values) >= 80 and late.owned)
    assert together.values == sent


def test_a_member_that_closes_while_the_group_waits_for_another_leaves_at_once(
    together: Group, bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic, 4)
    first, slow = together.joins(topic, **COOPERATIVE), together.joins(topic, **COOPERATIVE)
    together.until(together.shares(2, 2))
    late = together.joins(topic, **COOPERATIVE)
    with Admin(bootstrap) as admin:
        together.until(lambda: len(admin.describe_group(together.group).members) == 3, without=(slow,))
        together.leaves(late)
        together.leaves(first)
        assert len(admin.describe_group(together.group).members) == 1
    together.until(together.shares(4))


@pytest.mark.parametrize("kind", ["default", "consumer"])
def test_a_member_leaves_its_group_although_its_connections_break(
    proxied: testing.Broker, proxy: Proxy, group: str, topic: str, kind: str
) -> None:
    create(proxied.address, topic, 2)
    alone = Group(proxy.address, group)
    member = alone.joins(topic, **KINDS[kind], enable_auto_commit=False)
    alone.until(alone.shares(2))
    before = proxy.accepted
    proxy.cut_requests_after(0)
    with ThreadPoolExecutor(1) as aside:
        closed = aside.submit(member.consumer.close)
        assert wait_until(lambda: proxy.accepted > before + 1)
        proxy.heal()
        closed.result()
    with Admin(proxy.address) as admin:
        assert admin.describe_group(group).members == []


def test_sticky_members_keep_what_they_had_over_eager_rebalances(together: Group, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 6)
    members = [together.joins(topic, **KINDS["sticky"]) for _ in range(3)]
    together.until(together.shares(2, 2, 2))
    before = [member.owned for member in members[1:]]
    together.leaves(members[0])
    together.until(together.shares(3, 3))
    assert all(had <= member.owned for had, member in zip(before, members[1:], strict=True))


@pytest.mark.parametrize("kind", ["default", "cooperative-sticky", "consumer"])
def test_a_member_whose_application_does_not_poll_in_time_loses_its_partitions(
    together: Group, bootstrap: str, topic: str, kind: str
) -> None:
    everything = sorted(create(bootstrap, topic, 2))
    fill(bootstrap, topic, 2, range(2))
    settings = {**KINDS[kind], "max_poll_interval_ms": 1_500, "enable_auto_commit": False}
    slow = together.joins(topic, **settings)
    together.until(lambda: len(slow.values) == 2)
    other = together.joins(topic, **{**settings, "max_poll_interval_ms": 600_000})
    together.until(lambda: len(other.owned) == 2, without=(slow,))
    with pytest.raises(CommitFailed):
        slow.consumer.commit({everything[0]: 1})
    assert slow.heard("lost") == []
    together.until(together.shares(1, 1))
    assert slow.heard("lost") == everything
    assert slow.owned < set(slow.heard("assigned"))


@pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])
def test_the_restart_of_a_static_member_moves_nothing(together: Group, bootstrap: str, topic: str, kind: str) -> None:
    create(bootstrap, topic, 4)
    first = together.joins(topic, group_instance_id="one", **KINDS[kind])
    second = together.joins(topic, group_instance_id="two", **KINDS[kind])
    together.until(together.shares(2, 2))
    had, kept, given_up = second.owned, first.owned, first.heard("revoked")  # it may yet be told what it was assigned
    together.leaves(second)
    again = together.joins(topic, group_instance_id="two", **KINDS[kind])
    together.until(together.shares(2, 2))
    assert (again.owned, first.owned) == (had, kept)
    assert (first.heard("revoked"), first.heard("lost")) == (given_up, [])


def test_a_static_member_of_the_classic_protocol_takes_the_place_of_one_that_lives(
    together: Group, bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic, 1)
    first = together.joins(topic, group_instance_id="one", **CLASSIC)
    together.until(together.shares(1))
    second = together.joins(topic, group_instance_id="one", **CLASSIC)
    together.until(lambda: second.owned, without=(first,))
    for _ in range(2):
        with pytest.raises(FencedInstanceId):
            together.until(lambda: False)
    first.consumer.close()
    together.members.remove(first)
    second.poll()
    assert len(second.owned) == 1


@pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])
def test_a_static_member_that_unsubscribes_comes_back_under_its_member_id(
    together: Group, bootstrap: str, topic: str, kind: str
) -> None:
    """An unknown one with its name would fence it, if a join of its own arrives late (KAFKA-20985)."""
    create(bootstrap, topic, 1)
    member = together.joins(topic, group_instance_id="one", **KINDS[kind])
    together.until(together.shares(1))
    before = member.consumer.group_metadata()
    member.consumer.unsubscribe()
    assert member.consumer.group_metadata().member_id == ""
    member.consumer.subscribe(topic)
    together.until(lambda: len(member.consumer.assignment()) == 1)
    after = member.consumer.group_metadata()
    assert (after.member_id, after.group_instance_id) == (before.member_id, "one")


def test_a_static_member_of_the_newer_protocol_is_refused_while_another_has_its_name(
    together: Group, bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic, 1)
    first = together.joins(topic, group_instance_id="one", **NEWER)
    together.until(together.shares(1))
    together.joins(topic, group_instance_id="one", **NEWER)
    with pytest.raises(UnreleasedInstanceId):
        together.until(lambda: False)
    assert len(first.owned) == 1


@pytest.mark.parametrize("pattern", ["{}-[a-c]", "{}-(?!d)."], ids=["the broker's", "only Python's"])
@pytest.mark.parametrize("kind", ["default", "consumer"])
def test_a_pattern_takes_in_topics_that_are_made_later(
    together: Group, bootstrap: str, topic: str, kind: str, pattern: str
) -> None:
    wanted = create(bootstrap, f"{topic}-a", 2)
    create(bootstrap, f"{topic}-d", 1)
    compiled = re.compile(pattern.format(re.escape(topic).replace(r"\-", "-")))
    members = [together.joins(compiled, **KINDS[kind]) for _ in range(2)]
    together.until(together.shares(1, 1))
    wanted |= create(bootstrap, f"{topic}-b", 2)
    together.until(lambda: members[0].owned | members[1].owned == wanted and together.shares(2, 2)())


def test_a_changed_subscription_is_told_to_the_group(together: Group, bootstrap: str, topic: str) -> None:
    for kind in ("cooperative-sticky", "consumer"):
        one, other = create(bootstrap, f"{topic}-{kind}-a", 2), create(bootstrap, f"{topic}-{kind}-b", 2)
        alone = Group(bootstrap, f"{together.group}-{kind}")
        member = alone.joins([f"{topic}-{kind}-a"], **KINDS[kind])
        alone.until(lambda m=member, o=one: m.owned == o)
        member.consumer.subscribe([f"{topic}-{kind}-a", f"{topic}-{kind}-b"])
        alone.until(lambda m=member, o=one | other: m.owned == o)
        member.consumer.subscribe([f"{topic}-{kind}-b"])
        alone.until(lambda m=member, o=other: m.owned == o)
        alone.leaves(member)


@pytest.mark.parametrize("kind", ["default", "consumer"])
def test_the_leader_epoch_is_committed_with_the_offset(together: Group, bootstrap: str, topic: str, kind: str) -> None:
    (tp,) = create(bootstrap, topic, 1)
    fill(bootstrap, topic, 1, range(3))
    member = together.joins(topic, enable_auto_commit=False, **KINDS[kind])
    together.until(lambda: len(member.values) == 3)
    member.consumer.commit({tp: OffsetAndMetadata(2, "two", leader_epoch=0)})
    assert member.consumer.committed([tp]) == {tp: OffsetAndMetadata(2, "two", 0)}
    for at in (1, OffsetAndMetadata(1)):
        member.consumer.commit({tp: at})
        assert member.consumer.committed([tp]) == {tp: OffsetAndMetadata(1, "", 0)}
    member.consumer.commit({tp: 9})
    assert member.consumer.committed([tp]) == {tp: OffsetAndMetadata(9)}, "that record was not read"
    member.consumer.commit()
    assert member.consumer.committed([tp]) == {tp: OffsetAndMetadata(3, "", 0)}


@pytest.mark.parametrize("kind", ["default", "consumer"])
def test_a_consumer_that_has_unsubscribed_commits_as_nobodys_member_and_may_subscribe_again(
    together: Group, bootstrap: str, topic: str, kind: str
) -> None:
    (tp,) = create(bootstrap, topic, 1)
    fill(bootstrap, topic, 1, range(3))
    member = together.joins(topic, enable_auto_commit=False, **KINDS[kind])
    together.until(lambda: len(member.values) == 3)
    member.consumer.unsubscribe()
    assert member.heard("revoked") == [tp]
    member.consumer.assign([tp])
    member.consumer.commit({tp: 2})
    member.consumer.assign([])
    member.consumer.subscribe(topic)
    together.until(lambda: len(member.values) == 4)


def test_members_without_an_assignor_in_common_are_refused(together: Group, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 1)
    together.joins(topic, **KINDS["roundrobin"])
    together.until(together.shares(1))
    together.joins(topic, **KINDS["sticky"])
    with pytest.raises(InconsistentGroupProtocol):
        together.until(lambda: False)


def test_members_agree_on_the_assignor_that_all_have(together: Group, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 4)
    together.joins(topic, **{**CLASSIC, "partition_assignment_strategy": "cooperative-sticky,roundrobin"})
    together.joins(topic, **{**CLASSIC, "partition_assignment_strategy": ("sticky", "roundrobin", "range")})
    together.until(together.shares(2, 2))
    with Admin(bootstrap) as admin:
        described = admin.describe_group(together.group)
    assert "roundrobin" in repr(described)


def test_an_assignor_that_the_broker_does_not_have_is_named(together: Group, bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 1)
    together.joins(topic, group_remote_assignor="mine", **NEWER)
    with pytest.raises(UnsupportedAssignor, match="mine"):
        together.until(lambda: False)


def test_the_newer_protocol_says_so_if_the_broker_does_not_have_it(tmp_path: Path, topic: str, group: str) -> None:
    older = Broker(tmp_path, {"group.coordinator.rebalance.protocols": "classic"})
    older.start()
    try:
        member = Member(older.address, group, topic, **NEWER)
        create(older.address, topic, 1)
        with pytest.raises(UnsupportedVersion, match="group_protocol='classic'"):
            Group.until(_alone(member), lambda: False)
        member.consumer.close()
    finally:
        older.stop()


def _alone(member: Member) -> Group:
    group = Group("", "")
    group.members = [member]
    return group


@pytest.mark.parametrize("kind", ["default", "cooperative-sticky", "consumer"])
def test_members_stay_members_when_the_broker_is_killed_and_started_again(
    tmp_path: Path, group: str, topic: str, kind: str
) -> None:
    broker = Broker(tmp_path, FAST)
    broker.start()
    together = Group(broker.address, group)
    try:
        create(broker.address, topic, 4)
        together.joins(topic, **KINDS[kind])
        together.joins(topic, **KINDS[kind])
        together.until(together.shares(2, 2))
        broker.kill()
        broker.start()
        sent = fill(broker.address, topic, 4, range(40))
        together.until(lambda: len(together.values) >= 40)
        together.until(together.shares(2, 2))
        assert together.values == sent
        for member in together.members:
            member.consumer.close()
    finally:
        broker.stop()


@pytest.mark.parametrize("kind", ["cooperative-sticky", "consumer"])
def test_members_on_asyncio_share_a_group_and_their_listeners_are_awaited(
    bootstrap: str, topic: str, group: str, kind: str
) -> None:
    everything = create(bootstrap, topic, 4)
    sent = fill(bootstrap, topic, 4, range(40))
    told: list[tuple[str, TopicPartition]] = []

    def listener(what: str) -> Callable[[list[TopicPartition]], Coroutine[Any, Any, None]]:
        async def tell(some: list[TopicPartition]) -> None:
            await asyncio.sleep(0)
            told.extend((what, tp) for tp in some)

        return tell

    async def read() -> list[bytes]:
        settings = {"group_id": group, "auto_offset_reset": "earliest", **KINDS[kind]}
        async with aio.Consumer(bootstrap, **settings) as one, aio.Consumer(bootstrap, **settings) as other:
            one.subscribe(topic, on_assigned=listener("assigned"), on_revoked=listener("revoked"))
            other.subscribe(topic)
            values: list[bytes] = []
            deadline = Deadline(60)
            while len(values) < 40 or len(one.assignment()) != 2 or len(other.assignment()) != 2:
                assert not deadline.passed
                for consumer in (one, other):
                    values += [record.value for record in await consumer.poll(20)]
            assert {*one.assignment(), *other.assignment()} == everything
            return values

    assert sorted(set(asyncio.run(read()))) == sent
    assert {what for what, _ in told} == {"assigned", "revoked"}
    assert sorted(tp for what, tp in told if what == "assigned") == sorted(tp for what, tp in told if what == "revoked")
