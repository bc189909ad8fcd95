"""What the areas of transactions share: their topics, and their coordinators found.

A transaction's version is that of the requests about it, whatever the cluster has finalized: a Kafka 4.3.1 formatted
with `transaction.version=1` answers all of these areas as one with 2 does, but for InitProducerId of a producer whose
transaction was aborted for it, which may not recover its id there (90). With 0 EndTxn 5, TxnOffsetCommit 5 and the
Produce 12 that begins a transaction are 35.
"""

from moldau.protocol.apis import FIND_COORDINATOR, INIT_PRODUCER_ID, METADATA
from tests.differential.script import Step, step
from tests.differential.steps.topics import made, new
from tests.differential.steps.transaction_requests import init

STEPS: tuple[Step, ...] = (
    *made(
        "of transactions",
        new("tx", 3),
        new("tx-stuck"),
        new("tx-records", 6),
        new("tx-hanging", 3),
        new("tx-lives", 6),
        new("tx-mixed", 3),
        new("tx-doomed"),
        new("tx-mixtures", 4),
        new("tx-edges", 4),
    ),
    step(
        "metadata of tx-mixed", METADATA, 12, {"topics": [{"name": "tx-mixed"}]}, save={"mixed": "topics[0].topic_id"}
    ),
    step("a coordinator of transactions, in the oldest way", FIND_COORDINATOR, 1, {"key": "tx", "key_type": 1}),
    step("a coordinator of transactions, later", FIND_COORDINATOR, 3, {"key": "tx", "key_type": 1}),
    step("coordinators of transactions", FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": ["tx", "ty"]}),
    step("a coordinator of transactions, newest", FIND_COORDINATOR, 6, {"key_type": 1, "coordinator_keys": ["tx"]}),
    step("a coordinator of no transaction", FIND_COORDINATOR, 6, {"key_type": 1, "coordinator_keys": []}),
    step("a coordinator for an empty name of one", FIND_COORDINATOR, 5, {"key_type": 1, "coordinator_keys": [""]}),
    *(step(f"v{version}: an empty name begins", INIT_PRODUCER_ID, version, init("")) for version in range(6)),
)
