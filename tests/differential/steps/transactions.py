"""Transactions, which we refuse in one way wherever they begin: the accepted differences say so until we have them."""

from moldau.protocol.apis import FIND_COORDINATOR, INIT_PRODUCER_ID, PRODUCE
from tests.differential.batches import TRANSACTIONAL, batch
from tests.differential.script import Step, step
from tests.differential.steps.produce import to

STEPS: tuple[Step, ...] = (
    step("find a coordinator of transactions", FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": ["tx"]}),
    step(
        "a producer id for transactions",
        INIT_PRODUCER_ID,
        4,
        {"transactional_id": "tx", "transaction_timeout_ms": 1000},
        patient=False,
        until=lambda reply: reply["error_code"] not in (14, 15, 16, 51),
    ),
    step(
        "produce in a transaction",
        PRODUCE,
        8,
        to("grown", batch(b"x", attributes=TRANSACTIONAL), transactional_id="tx"),
    ),
)
