"""Transactional batches by raw requests: transactions that are open, and those that hang."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from moldau.client.blocking import BlockingLink
from moldau.peers.address import bootstrap_addresses
from moldau.protocol import apis
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import TRANSACTIONAL_BIT, Row, encode_batch


class Producer:
    """One that begins transactions and leaves them open; without a transactional id no coordinator knows of them."""

    def __init__(self, address: str, transactional_id: str | None):
        self.link = BlockingLink(bootstrap_addresses(address)[0], "producer", 30_000)
        self.transactional_id = transactional_id
        if transactional_id is not None:
            find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
            self._until_done(apis.FIND_COORDINATOR, find, lambda reply: reply.coordinators[0].error_code)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=600_000)
        made = self._until_done(apis.INIT_PRODUCER_ID, request, lambda reply: reply.error_code)
        self.producer_id, self.epoch = made.producer_id, made.producer_epoch

    def _until_done(self, api: apis.Api, request: Any, error: Callable[[Any], int]) -> Any:
        for _ in range(300):
            reply = self.link.call(api, request)
            if not error(reply):
                return reply
            time.sleep(0.1)
        raise AssertionError(reply)

    def write(self, topic: str, partition: int = 0, age_ms: int = 0, version: int = 12) -> None:
        self.write_values(topic, [b"x"], partition, age_ms, version)

    def write_values(
        self, topic: str, values: Sequence[bytes], partition: int = 0, age_ms: int = 0, version: int = 12
    ) -> None:
        """One batch, the first of its producer's epoch in the partition."""
        rows = [Row(None, value, int(time.time() * 1000) - age_ms) for value in values]
        of_producer = {"producer_id": self.producer_id, "producer_epoch": self.epoch, "base_sequence": 0}
        records = bytes(encode_batch(rows, attributes=TRANSACTIONAL_BIT, **of_producer))
        data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])]
        name = self.transactional_id or "nobody's"
        self.link.versions._chosen[apis.PRODUCE.key] = version
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5000, topic_data=data)
        reply = self.link.call(apis.PRODUCE, request)
        assert [part.error_code for part in reply.responses[0].partition_responses] == [0]

    def end(self, *, commits: bool) -> None:
        """End the transaction; its markers may still be on their way."""
        assert self.transactional_id is not None
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )
        reply = self._until_done(apis.END_TXN, request, lambda reply: reply.error_code)
        self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch

    def close(self) -> None:
        self.link.close()
