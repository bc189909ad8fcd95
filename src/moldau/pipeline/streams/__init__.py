"""Stream operations: functions from DataFrame to DataFrame with event time, for batch reads and streams of any source.

Each function takes the name of the event-time column (`at`) and Spark's watermark delay (`delay`). In a batch read the
delay has no effect: all rows are present, so none is late. In a stream the watermark is the greatest event time seen
minus the delay; a stateful operation drops rows that are older, and forgets state that no later row can change.
`docs/streams.md` has an example of each function.
"""

from moldau.pipeline.streams.deduplicating import deduplicate
from moldau.pipeline.streams.joining import join_within
from moldau.pipeline.streams.late_rows import late_rows
from moldau.pipeline.streams.records import json_events, records
from moldau.pipeline.streams.running import run_to_end
from moldau.pipeline.streams.sessions import sessions
from moldau.pipeline.streams.tables import join_table, latest_by_key
from moldau.pipeline.streams.top_k import top_k
from moldau.pipeline.streams.windows import Window, session, sliding, tumbling, windowed, windowed_counts

__all__ = [
    "Window",
    "deduplicate",
    "join_table",
    "join_within",
    "json_events",
    "late_rows",
    "latest_by_key",
    "records",
    "run_to_end",
    "session",
    "sessions",
    "sliding",
    "top_k",
    "tumbling",
    "windowed",
    "windowed_counts",
]
