"""Which decisions share a batch, and records that do not fit into one."""

from moldau.coordinators.batching import BATCH_BYTES_MAX, decisions_of_next_batch
from moldau.coordinators.decision import Decision, InternalRecord, InTransaction
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from tests.coordinators.fake_log import (
    FakeLog,
    answered,
    in_virtual_time,
    leading,
)
from tests.coordinators.groups.scene import TOPIC_ID


def test_many_records_go_out_in_several_batches() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "simple")
        offsets = [NewOffset(TopicPartition("t", n), n, -1, "x" * 4000, TOPIC_ID) for n in range(200)]
        ask = OffsetsToCommit(
            group_id="simple", member_id="", instance_id=None, generation=-1, retention_ms=-1, offsets=offsets
        )
        assert await answered(groups.commit(ask)) == [ErrorCode.NONE] * 200
        sizes = [len(batch) for batch in log.batches[groups.partition_of("simple")]]
        assert len(sizes) == 2
        assert max(sizes) <= BATCH_BYTES_MAX
        assert len(groups.offsets("simple")) == 200
        await groups.stop()

    in_virtual_time(play())


def test_decisions_share_a_batch_up_to_its_limit_and_one_about_a_transaction_has_its_own() -> None:
    small, half = (Decision([InternalRecord(b"k", bytes(size))]) for size in (10, BATCH_BYTES_MAX // 2))
    large = Decision([InternalRecord(b"k", bytes(BATCH_BYTES_MAX))])
    pending = Decision([InternalRecord(b"k", b"v")], transaction=InTransaction(1, 0, None))
    assert decisions_of_next_batch([]) == 0
    assert decisions_of_next_batch([small, half, half, small]) == 2
    assert decisions_of_next_batch([large, small]) == 1
    assert decisions_of_next_batch([small, pending, small]) == 1
    assert decisions_of_next_batch([pending, small]) == 1
