"""A batch whose checksum holds and whose records are bad: what is before it is handed out, then it is an error."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import Deadline, stretched
from moldau.checksums import crc32c
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import DamagedBatch, ErrorCode
from moldau.names import TopicPartition
from moldau.records.batch import ATTRIBUTES_AT, CRC_AT, batches
from moldau.testing import Broker

TP = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a broker with a log of five batches of a record each, of which that at offset 3 is malformed."""
    with Broker(data_dir=tmp_path_factory.mktemp("broker")) as broker:
        broker.create_topic(TP.topic, 1)
        with Producer(broker.address) as producer:
            for number in range(5):
                producer.send(TP.topic, b"%d" % number, partition=TP.partition).result(stretched(30))
        broker.stop()
        segment = Path(broker.data_dir) / str(TP) / f"{0:020}.log"
        data = bytearray(segment.read_bytes())
        for at, header in [*batches(memoryview(data))]:
            if header.base_offset == 3:
                end = at + header.size
                data[end - 1] = 2  # a header that is not there
                struct.pack_into(">I", data, at + CRC_AT, crc32c(memoryview(data)[at + ATTRIBUTES_AT : end]))
        segment.write_bytes(data)
        broker.start()
        yield broker.address


def test_a_table_has_what_precedes_it_and_the_next_call_raises(address: str) -> None:
    with Consumer(address) as consumer:
        consumer.assign([TP])
        consumer.seek(TP, 0)
        deadline, found = Deadline(), list[bytes]()
        while len(found) < 3:
            assert not deadline.passed
            found += consumer.poll_table(200).column("value").to_pylist()
        assert found == [b"0", b"1", b"2"]
        assert consumer.position(TP) == 3
        with pytest.raises(DamagedBatch, match="offset 3") as malformed:
            consumer.poll_table(timeout=stretched(30))
        assert malformed.value.code is ErrorCode.CORRUPT_MESSAGE and malformed.value.topic_partition == TP
        consumer.seek(TP, malformed.value.last + 1)
        while not (rows := consumer.poll_table(200).to_pylist()):
            assert not deadline.passed
        assert [row["value"] for row in rows] == [b"4"]
