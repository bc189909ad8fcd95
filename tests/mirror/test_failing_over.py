"""Fail-over and promotion: mirrors become topics that clients write to, and groups go on where they were."""

import asyncio
import re
from collections.abc import Iterator

import pytest

from moldau.client.administration.groups import GroupListing
from moldau.client.administration.transactions import ProducerDescription
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import ErrorCode, KafkaError, NotDelivered
from moldau.mirror import failing_over, promoting
from moldau.mirror.ends import SETTING, ClusterEnd
from moldau.mirror.failing_over import fail_over, fail_over_all, fence, rehearse
from moldau.mirror.groups import sync_groups, to_commit
from moldau.mirror.promoting import promote
from moldau.mirror.status import interrupted
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.records.batch import HANDOVER, Marker, encode_batch, encode_handover, encode_marker, read_control
from moldau.testing import Broker
from tests.mirror.mirroring import Mirroring, log_of, mirroring

ALL = re.compile(".*")
METADATA_BYTES_MAX = 100
"""Of offsets in the target; the source takes more."""


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    settings = {"offset.metadata.max.bytes": METADATA_BYTES_MAX}
    with Broker() as source, Broker(settings, data_dir=tmp_path_factory.mktemp("target")) as target:
        yield source, target


def produce(broker: Broker, topic: str, *values: bytes) -> None:
    with Producer(broker.address, acks="all", enable_idempotence=True) as producer:
        for value in values:
            producer.send(topic, value)


def values(broker: Broker, topic: str, count: int, group: str | None = None) -> list[bytes]:
    """That many committed records: of a group, and committed, or from the beginning."""
    with Consumer(
        broker.address, group_id=group, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        if group is None:
            consumer.assign([TopicPartition(topic, 0)])
        else:
            consumer.subscribe([topic])
        found: list[bytes] = []
        while len(found) < count:
            found += [one.value for one in consumer.poll(max_records=count - len(found)) if one.value is not None]
        if group is not None:
            consumer.commit()
        return found


def test_after_a_fail_over_open_transactions_are_aborted_and_clients_write(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    tp = TopicPartition("orders", 0)
    source.create_topic("orders", 1)
    produce(source, "orders", b"1", b"2")
    with Producer(source.address, transactional_id="open") as producer:
        producer.begin_transaction()
        producer.send("orders", b"of an open transaction").result()

        async def scenario() -> None:
            async with mirroring(source, target, "orders") as mirror:
                end = mirror.target
                await mirror.until_equal(tp)
                mirror_source = (await end.own_settings("orders"))[SETTING]
                assert [one[1:] for one in await rehearse(end, "orders")] == [(3, 1)]
                await fence(end, "orders", mirror_source)  # and interrupted there
                with pytest.raises(NotDelivered, match="is a mirror"):
                    await asyncio.to_thread(produce, target, "orders", b"x")
                await mirror.until(lambda: "fails over" in mirror.worker.refused.get("orders", ""))
                over = await fail_over(end, "orders", (await end.own_settings("orders"))[SETTING])
                assert [one[1:] for one in over] == [(5, 1)]
                assert SETTING not in await end.own_settings("orders")
                before = await log_of(end, tp)
                await asyncio.to_thread(produce, source, "orders", b"behind")
                await mirror.until(lambda: "is not a mirror" in mirror.worker.refused.get("orders", ""))
                assert await log_of(end, tp) == before

        asyncio.run(scenario())
        producer.abort_transaction()
    # Their producers have ids that the source has given to others, whose epochs and sequences the log has.
    for number in range(3):
        produce(target, "orders", b"of the target %d" % number)
        if number == 1:
            target.restart()
    assert values(target, "orders", 5) == [b"1", b"2", *(b"of the target %d" % number for number in range(3))]


def test_a_transaction_of_the_target_ends_whatever_coordinator_the_source_had(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    source.create_topic("moved", 1)
    for _ in range(3):  # the source's coordinator is the newer one
        source.restart()
        with Producer(source.address, transactional_id="moved") as producer, producer.transaction():
            producer.send("moved", b"of the source")

    async def scenario() -> None:
        async with mirroring(source, target, "moved") as mirror:
            await mirror.until_equal(TopicPartition("moved", 0))
            await fail_over(mirror.target, "moved", (await mirror.target.own_settings("moved"))[SETTING])

    asyncio.run(scenario())
    for restarts in range(2):
        with Producer(target.address, transactional_id=f"there {restarts}") as producer, producer.transaction():
            producer.send("moved", b"of the target")
        if not restarts:
            target.restart()
    assert values(target, "moved", 5) == [b"of the source"] * 3 + [b"of the target"] * 2


def test_a_promotion_waits_for_all_records_and_takes_the_offsets_of_groups(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    source.create_topic("payments", 1)
    produce(source, "payments", b"1", b"2", b"3")
    assert values(source, "payments", 2, "billing") == [b"1", b"2"]

    async def scenario() -> None:
        async with mirroring(source, target, "payments") as mirror:
            await mirror.until_equal(TopicPartition("payments", 0))
            await mirror.stop()
            await asyncio.to_thread(produce, source, "payments", b"4")
            mirrors = {"payments": (await mirror.target.own_settings("payments"))[SETTING]}
            with pytest.raises(KafkaError, match="still lack 1 record: does a worker run"):
                await promote(mirror.source, mirror.target, mirrors, ALL, 0)
            mirror.start()
            assert (await promote(mirror.source, mirror.target, mirrors, ALL, 60)).over[0].end == 5

    asyncio.run(scenario())
    produce(target, "payments", b"5")
    assert values(target, "payments", 3, "billing") == [b"3", b"4", b"5"]


def test_a_promotion_waits_for_partitions_that_the_source_has_got(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    source.create_topic("widened", 1)
    produce(source, "widened", b"1")

    async def scenario() -> None:
        async with mirroring(source, target, "widened") as mirror:
            await mirror.until_equal(TopicPartition("widened", 0))
            await mirror.stop()
            await mirror.source.admin.create_partitions("widened", 2)
            mirrors = {"widened": (await mirror.target.own_settings("widened"))[SETTING]}
            with pytest.raises(KafkaError, match="widened has 2 partitions in the source, and its mirror 1"):
                await promote(mirror.source, mirror.target, mirrors, ALL, 0)
            mirror.start()
            assert len((await promote(mirror.source, mirror.target, mirrors, ALL, 60)).over) == 2

    asyncio.run(scenario())


def test_a_promotion_that_finds_new_records_leaves_a_mirror(
    clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    source.create_topic("growing", 1)
    produce(source, "growing", b"1")

    async def scenario() -> None:
        async with mirroring(source, target, "growing") as mirror:
            await mirror.until_equal(TopicPartition("growing", 0))
            mirrors = {"growing": (await mirror.target.own_settings("growing"))[SETTING]}

            async def level_for_a_moment(*_: object) -> None:
                await mirror.stop()
                await asyncio.to_thread(produce, source, "growing", b"2")

            monkeypatch.setattr("moldau.mirror.promoting.until_level", level_for_a_moment)
            with pytest.raises(KafkaError, match="producers still write to growing"):
                await promote(mirror.source, mirror.target, mirrors, ALL, 0)
            mirror.start()
            await mirror.until_equal(TopicPartition("growing", 0))

    asyncio.run(scenario())


def test_a_promotion_that_does_not_end_leaves_mirrors(
    clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    names = ("cut", "short")
    for name in names:
        source.create_topic(name, 1)
    forever = asyncio.Event()

    async def scenario() -> None:
        async with mirroring(source, target, "cut|short") as mirror:
            for name in names:
                await mirror.until(lambda name=name: name in mirror.worker.copying.topics)
            await mirror.stop()
            mirrors = {name: (await mirror.target.own_settings(name))[SETTING] for name in names}
            looked = asyncio.Event()

            async def looking(*_: object) -> list[str]:
                looked.set()
                await forever.wait()
                return []

            monkeypatch.setattr(promoting, "_grown", looking)
            promotion = asyncio.ensure_future(promote(mirror.source, mirror.target, mirrors, ALL, 60))
            await looked.wait()
            assert await interrupted(mirror.target) == [*names]
            promotion.cancel()
            with pytest.raises(asyncio.CancelledError):
                await promotion
            assert [(await mirror.target.own_settings(name))[SETTING] for name in names] == [*mirrors.values()]

            alter = mirror.target.admin.alter_topic_configs

            async def lost(name: str, changes: dict[str, str | None]) -> None:
                if name == "cut" and changes[SETTING] == mirrors["cut"]:
                    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")
                await alter(name, changes)
                if name == "short" and changes[SETTING] != mirrors["short"]:
                    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the answer is lost")

            monkeypatch.setattr(mirror.target.admin, "alter_topic_configs", lost)
            with pytest.raises(KafkaError, match=r"the answer is lost; cut: the fail-over is half done.*: no answer"):
                await promote(mirror.source, mirror.target, mirrors, ALL, 60)
            assert (await mirror.target.own_settings("short"))[SETTING] == mirrors["short"]
            assert await interrupted(mirror.target) == ["cut"]
            await alter("cut", {SETTING: mirrors["cut"]})

    asyncio.run(scenario())


def test_a_promotion_tells_which_groups_did_not_get_their_offsets(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    source.create_topic("told", 1)
    produce(source, "told", b"1", b"2")
    tp = TopicPartition("told", 0)

    async def scenario() -> None:
        async with mirroring(source, target, "told") as mirror:
            await mirror.until_equal(tp)
            await mirror.stop()
            of_source, of_target = mirror.source.admin, mirror.target.admin
            await of_source.alter_group_offsets("brief", {tp: 2})
            await of_source.alter_group_offsets("wordy", {tp: OffsetAndMetadata(2, "x" * (METADATA_BYTES_MAX + 1))})
            mirrors = {"told": (await mirror.target.own_settings("told"))[SETTING]}
            done = await promote(mirror.source, mirror.target, mirrors, ALL, 60)
            assert [one.tp for one in done.over] == [tp]
            assert {group: failure.code for group, failure in done.groups.items()} == {
                "wordy": ErrorCode.OFFSET_METADATA_TOO_LARGE
            }
            assert (await of_target.group_offsets("brief"))[tp].offset == 2

    asyncio.run(scenario())


def test_a_promotion_that_cannot_ask_for_groups_leaves_mirrors(
    clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    source.create_topic("unasked", 1)

    async def away() -> list[GroupListing]:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the source is away")

    async def scenario() -> None:
        async with mirroring(source, target, "unasked") as mirror:
            await mirror.until_equal(TopicPartition("unasked", 0))
            await mirror.until(lambda: "unasked" in mirror.worker.copying.topics)
            await mirror.stop()
            mirrors = {"unasked": (await mirror.target.own_settings("unasked"))[SETTING]}
            monkeypatch.setattr(mirror.source.admin, "list_groups", away)
            with pytest.raises(KafkaError, match="the source is away"):
                await promote(mirror.source, mirror.target, mirrors, ALL, 60)
            assert (await mirror.target.own_settings("unasked"))[SETTING] == mirrors["unasked"]

    asyncio.run(scenario())


def test_a_topic_that_cannot_be_failed_over_holds_up_no_other(
    clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    for name in ("held", "quick"):
        source.create_topic(name, 1)
        produce(source, name, b"1")

    async def without_a_leader(end: ClusterEnd, tp: TopicPartition) -> list[ProducerDescription]:
        if tp.topic == "held":
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "its leader is away")
        return []

    async def scenario() -> None:
        async with mirroring(source, target, "held|quick") as mirror:
            for name in ("held", "quick"):
                await mirror.until_equal(TopicPartition(name, 0))
            mirrors = {name: (await mirror.target.own_settings(name))[SETTING] for name in ("held", "quick")}
            with monkeypatch.context() as patched:
                patched.setattr(failing_over, "open_transactions", without_a_leader)
                done = await fail_over_all(mirror.target, mirrors)
            assert [one.tp.topic for one in done.over] == ["quick"]
            assert str(done.failures["held"]) == "its leader is away"
            assert await interrupted(mirror.target) == ["held"]
            again = {"held": (await mirror.target.own_settings("held"))[SETTING]}
            assert [one.tp.topic for one in (await fail_over_all(mirror.target, again)).over] == ["held"]

    asyncio.run(scenario())


def test_groups_are_kept_while_the_mirror_works(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    source.create_topic("read", 1)
    produce(source, "read", b"1", b"2", b"3")
    assert values(source, "read", 2, "readers") == [b"1", b"2"]
    tp = TopicPartition("read", 0)

    async def scenario(mirror: Mirroring, offset: int) -> None:
        admin = mirror.target.admin
        while (at := (await admin.group_offsets("readers")).get(tp)) is None or at.offset != offset:
            await asyncio.sleep(0.01)

    async def played() -> None:
        async with mirroring(source, target, "read") as mirror:
            await asyncio.wait_for(scenario(mirror, 2), 60)
            assert await asyncio.to_thread(values, source, "read", 1, "readers") == [b"3"]
            await asyncio.wait_for(scenario(mirror, 3), 60)
            await mirror.source.admin.alter_group_offsets("readers", {tp: 1})  # back: the target's stays
            await mirror.worker.sync_groups()
            await scenario(mirror, 3)

    asyncio.run(played())


def test_a_group_keeps_no_offset_of_a_topic_that_was_made_anew(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    tp = TopicPartition("anew", 0)
    source.create_topic("anew", 1)
    produce(source, "anew", b"1", b"2", b"3")

    async def scenario() -> None:
        async with mirroring(*clusters, "anew") as mirror:
            await mirror.until_equal(tp)
            mirrors = {"anew": mirror.worker.copying.topics["anew"].source}
            await mirror.stop()
            await mirror.source.admin.delete_topics(["anew"])
            await mirror.source.admin.create_topic("anew", partitions=1)
            await asyncio.to_thread(produce, source, "anew", b"4", b"5")
            await mirror.source.admin.alter_group_offsets("of the new one", {tp: 2})
            assert "of the new one" not in (await sync_groups(mirror.source, mirror.target, mirrors, ALL)).changed

    asyncio.run(scenario())


def test_share_groups_have_no_offsets_to_keep(clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kafka 4 has them: OffsetFetch refuses their names."""

    async def listed() -> list[GroupListing]:
        return [GroupListing("sharing", "share", "Stable", "share")]

    async def refused(name: str) -> dict[TopicPartition, OffsetAndMetadata]:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, name)

    async def scenario() -> None:
        async with mirroring(*clusters, "nothing") as mirror:
            monkeypatch.setattr(mirror.source.admin, "list_groups", listed)
            monkeypatch.setattr(mirror.source.admin, "group_offsets", refused)
            assert await sync_groups(mirror.source, mirror.target, {}, ALL) == ({}, {})

    asyncio.run(scenario())


def test_a_group_gets_no_offset_that_has_not_arrived_and_none_below_its_own() -> None:
    one, two, three = (TopicPartition("t", number) for number in range(3))
    of_source = {tp: OffsetAndMetadata(10, "x", 7) for tp in (one, two, three, TopicPartition("other", 0))}
    of_target = {two: OffsetAndMetadata(8), three: OffsetAndMetadata(9)}
    assert to_commit(of_source, of_target, {one: 6, two: 8, three: 20}) == {
        one: OffsetAndMetadata(6, "x"),
        three: OffsetAndMetadata(10, "x"),
    }


def test_only_the_record_of_a_handover_is_read_as_one() -> None:
    assert read_control(encode_handover(5)) is HANDOVER
    assert read_control(encode_marker(5, 0, True, 0, 5)) == Marker(True, 0)
    assert read_control(encode_batch([(b"k", b"v", 5, ())])) is None
