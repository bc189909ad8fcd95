"""Whether a source's log goes on from its mirror's: what two batches say of it."""

import pytest

from moldau.mirror.copies import LogSpan, divergence
from moldau.names import TopicPartition
from moldau.records.batch import DELETE_HORIZON_BIT, BatchHeader

TP, LOG = TopicPartition("t", 0), LogSpan(0, 10)
WHOLE = BatchHeader(
    base_offset=6,
    batch_length=80,
    partition_leader_epoch=3,
    magic=2,
    crc=1,
    attributes=0,
    last_offset_delta=3,
    base_timestamp=0,
    max_timestamp=0,
    producer_id=7,
    producer_epoch=1,
    base_sequence=40,
    count=4,
)
CLEANED = WHOLE._replace(crc=2, count=2, batch_length=60)
EMPTIED = WHOLE._replace(crc=3, count=0, batch_length=49)
DATED = WHOLE._replace(crc=4, attributes=DELETE_HORIZON_BIT)


@pytest.mark.parametrize("mirror", [WHOLE, CLEANED, EMPTIED, DATED])
@pytest.mark.parametrize("source", [WHOLE, CLEANED, EMPTIED, DATED])
def test_what_compaction_left_of_a_batch_is_that_batch_whatever_the_topic_is_set_to_today(
    source: BatchHeader, mirror: BatchHeader
) -> None:
    assert divergence(TP, LOG, LOG, source, mirror) == ""


@pytest.mark.parametrize(
    "other",
    [
        WHOLE._replace(crc=9),
        CLEANED._replace(producer_id=8),
        CLEANED._replace(producer_epoch=2),
        CLEANED._replace(base_sequence=44),
        CLEANED._replace(last_offset_delta=4),
    ],
)
def test_a_batch_of_another_content_or_writer_is_another_one(other: BatchHeader) -> None:
    for source, mirror in ((WHOLE, other), (other, WHOLE)):
        assert "other records at offset 9" in divergence(TP, LOG, LOG, source, mirror)


def test_what_one_of_the_logs_has_deleted_cannot_be_compared() -> None:
    assert divergence(TP, LOG, LOG, None, WHOLE) == divergence(TP, LOG, LOG, WHOLE, None) == ""
    assert "lost records" in divergence(TP, LogSpan(0, 9), LOG, None, WHOLE)
