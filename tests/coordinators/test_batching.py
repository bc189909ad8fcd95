"""Records that do not fit into one batch."""

from moldau.coordinators.batching import BATCH_BYTES_MAX
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
