"""One batch from a client, planned and appended at a replica as a Produce does it."""

from moldau.replication.client_appends import PlannedAppend, append_planned, plan_append
from moldau.replication.replica import Replica
from moldau.replication.results import AppendOutcome, AppendTerms

TERMS = AppendTerms(acks_all=False, transactional=True, zstd=True, transaction_version=0)


def planned(replica: Replica, records: bytes, now_ms: int) -> PlannedAppend:
    """The plan for a batch that is not refused unseen; the batch is copied."""
    plan = plan_append(replica, memoryview(bytearray(records)), TERMS, now_ms)
    assert isinstance(plan, PlannedAppend), plan
    return plan


def produce(replica: Replica, records: bytes, now_ms: int) -> AppendOutcome:
    return append_planned(planned(replica, records, now_ms), now_ms)
