"""`__transaction_state` is the same thing to both: Kafka decodes every record of ours, and what we read of Kafka's we
would have written byte for byte."""

import json
from pathlib import Path
from typing import Any

from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.transactions.messages import TransactionSettings
from moldau.coordinators.transactions.records import transaction_record
from moldau.coordinators.transactions.transaction import TransactionState
from moldau.errors import ErrorCode
from moldau.records import rows
from moldau.records.batch import encode_batch
from tests.agreement import apache
from tests.agreement.dumping import DumpTool
from tests.agreement.standing import InVirtualTime
from tests.coordinators.transactions.scene import TransactionActor, TransactionStage, transaction_of
from tests.handlers.living import Living
from tests.handlers.transacting import transactor

PLAY = """
init a timeout=20s
add a t-0 u-3
add a t-1
commit a
marked
add a t-2
abort a
marked
abort a
marked
bump 32766
add a t-0
commit a
marked
init b id=y
add b id=y v=0 t-7
commit b id=y v=0
marked id=y
add b id=y v=0 t-7
wait 70s
marked id=y
wait 8d
"""
STATES = {"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}


def value_of(payload: str) -> Any:
    return None if payload == "<DELETE>" else json.loads(payload)


def test_kafka_decodes_every_record_that_the_coordinator_writes(tool: DumpTool, tmp_path: Path) -> None:
    stage = TransactionStage(TransactionSettings())
    actor = TransactionActor(stage)
    for line in PLAY.strip().splitlines():
        actor.play(line)
    file = tmp_path / "__transaction_state-0" / "00000000000000000000.log"
    file.parent.mkdir()
    file.write_bytes(bytes(encode_batch([(record.key, record.value, 1, []) for record in stage.log])))

    dump = tool.dump([file], "--transaction-log-decoder")
    assert dump.complaints == []
    found = [(json.loads(one["key"]), value_of(one["payload"])) for one in dump.records()]
    assert len(found) == len(stage.log)
    seen = set()
    for record, (key, value) in zip(stage.log, found, strict=True):
        transactional_id, written = transaction_of(record)
        assert key == {"type": "0", "data": {"transactionalId": transactional_id}}
        assert (value is None) == (written is None)
        if written is None:
            seen.add("gone")
            continue
        data = value["data"]
        seen.add(written.state.label)
        assert (value["version"], data["transactionStatus"]) == ("1", written.state)
        assert (data["producerId"], data["producerEpoch"]) == (written.producer_id, written.epoch)
        assert data["transactionTimeoutMs"] == written.timeout_ms
        assert data["transactionLastUpdateTimestampMs"] == written.update_ms
        assert data["transactionStartTimestampMs"] == written.start_ms
        assert data.get("clientTransactionVersion", 0) == written.client_version
        assert data.get("previousProducerId", -1) == written.previous_producer_id
        assert data.get("nextProducerId", -1) == written.next_producer_id
        topics = data["transactionPartitions"]
        assert (topics is None) == (written.state is TransactionState.EMPTY)
        partitions = {(one["topic"], number) for one in topics or [] for number in one["partitionIds"]}
        assert partitions == set(written.partitions)
    assert seen == STATES | {"gone"}


def test_kafka_decodes_what_a_broker_of_ours_leaves(tool: DumpTool, tmp_path: Path) -> None:
    """Two versions of clients, a commit and an abort each, on disk: the log of each partition, in order."""

    async def scenario(alive: Living) -> None:
        await alive.make("a", 2, message_timestamp_after_max_ms=2**63 - 1)  # virtual time is years behind
        for transactional_id, add, produce, end in (("old", 3, 11, 4), ("new", 0, 12, 5)):
            one = await transactor(alive, transactional_id)
            for commits in (True, False):
                if add:
                    await one.add("a", 0, version=add)
                assert await one.write("a", 0, b"x", version=produce) is ErrorCode.NONE
                assert await one.end(commits, version=end) is ErrorCode.NONE
            await one.init()
        alive.hang_up()

    broker = InVirtualTime({"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3"})
    try:
        broker.start()
        broker.run(scenario(Living(broker.broker)))
        broker.stop()
        data = broker.copy(tmp_path / "data")
    finally:
        broker.close()
    files = sorted(data.glob("__transaction_state-*/*.log"))
    dump = tool.dump(files, "--transaction-log-decoder")
    assert dump.complaints == []
    steps: dict[str, list[tuple[int, int, int]]] = {}
    for one in dump.records():
        data = json.loads(one["payload"])["data"]
        step = (data["transactionStatus"], data["producerEpoch"], data.get("clientTransactionVersion", 0))
        steps.setdefault(json.loads(one["key"])["data"]["transactionalId"], []).append(step)
    empty, ongoing, committing, aborting, committed, aborted = range(6)
    assert steps == {
        "old": [
            (empty, 0, 0),
            *((state, 0, 0) for state in (ongoing, committing, committed, ongoing, aborting, aborted)),
            (empty, 1, 0),
        ],
        "new": [
            (empty, 0, 0),
            *((ongoing, 0, 2), (committing, 1, 2), (committed, 1, 2)),
            *((ongoing, 1, 2), (aborting, 2, 2), (aborted, 2, 2)),
            (empty, 3, 2),
        ],
    }


def test_kafkas_own_records_are_those_that_we_would_have_written(written: apache.Written) -> None:
    files = sorted(written.clean.glob("__transaction_state-*/*.log"))
    records = [InternalRecord(row.key, row.value) for file in files for row in rows.iterate(file.read_bytes())]
    states = set()
    for record in records:
        transactional_id, transaction = transaction_of(record)
        states.add(transaction.state if transaction is not None else None)
        assert transaction_record(transactional_id, transaction, 2) == record
    assert states >= {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
        TransactionState.COMPLETE_COMMIT,
    }
