"""A fault of kafka-python 3.0.12, the newest release in November 2026: its consumer loses a join and reads no more.

If metadata that arrive after the first join name other partitions, `need_rejoin()` is true only because two snapshots
differ; the flag `rejoin_needed` stays false. `poll(timeout_ms)` begins the second join as a task and gives up when its
time is over. While the task runs, the member, as the group's leader, makes the snapshots equal. From then on
`need_rejoin()` is false, so no later poll collects the task: the assignment in the answer to SyncGroup is dropped,
heartbeats stay switched off, and the consumer spins. A busy machine makes it likely: poll's 200 ms end before the join.
"""

import sys
from typing import Any


def rejoin_if_lost(consumer: Any) -> bool:
    """To be called between two polls. A finished join that no poll would collect is done again; returns whether there
    was one. Older releases keep no such task."""
    coordinator = consumer._coordinator
    join = getattr(coordinator, "_join_task", None)
    if join is None or not join.is_done or coordinator.need_rejoin():
        return False
    print("kafka-python has lost a join, and joins again (see lost_joins.py)", file=sys.stderr, flush=True)
    coordinator.request_rejoin()
    return True
