"""How many rows a second `pipeline load` moves from a topic into a Delta table: from the first fetch to the commit.

usage: python -m benchmarks.pipeline_load [--rows 5000000] [--value-bytes 200] [--partitions 4] [--runs 2]

The broker runs on the same machine; values are random bytes (nothing to compress), uncompressed in the log, of one
event date. The session's start is not counted; the first run starts Spark's Python workers and pays for that.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow

from moldau.client.administration.admin import Admin
from moldau.client.blocking import Caller
from moldau.demo.broker_process import running_broker
from moldau.names import TopicPartition
from moldau.pipeline.loading.load import load
from moldau.pipeline.session import start_session
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.protocol.apis import PRODUCE
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.arrow import from_columns

TOPIC = "rows"
BATCH_BYTES_MAX = 1_000_000
EVENT_TIME_MS = 1_700_000_000_000


def fill(bootstrap: str, rows: int, value_bytes: int, partitions: int) -> float:
    """Produce the rows, the same share to each partition; returns the seconds it took."""
    began = time.monotonic()
    batch_rows = max(1, BATCH_BYTES_MAX // (value_bytes + 16))
    with Caller(bootstrap) as caller:
        sent = batch = 0
        while sent < rows:
            count = min(batch_rows, rows - sent)
            offsets = pyarrow.array(range(0, (count + 1) * value_bytes, value_bytes), pyarrow.int32()).buffers()[1]
            values = pyarrow.Array.from_buffers(
                pyarrow.binary(), count, [None, offsets, pyarrow.py_buffer(os.urandom(count * value_bytes))]
            )
            times = pyarrow.array([EVENT_TIME_MS] * count, pyarrow.int64())
            tp = TopicPartition(TOPIC, batch % partitions)
            data = PartitionProduceData(index=tp.partition, records=bytes(from_columns(None, values, times)))
            request = ProduceRequest(
                acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
            )
            reply = caller.leader(tp).call(PRODUCE, request)
            error = reply.responses[0].partition_responses[0].error_code
            assert not error, f"the broker answered error {error}"
            sent, batch = sent + count, batch + 1
    return time.monotonic() - began


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="rows a second of pipeline load")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--value-bytes", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    figures = []
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as name:
        folder = Path(name)
        with running_broker(folder / "data", folder / "broker.pid", folder / "broker.log") as bootstrap:
            with Admin(bootstrap) as admin:
                configs = {"retention.ms": "-1"}
                admin.create_topic(TOPIC, partitions=chosen.partitions, replication_factor=1, configs=configs)
            seconds = fill(bootstrap, chosen.rows, chosen.value_bytes, chosen.partitions)
            print(f"filled {chosen.rows:,} rows in {seconds:.1f} s", file=sys.stderr)
            spark = start_session("benchmark", scratch=folder / "scratch")
            try:
                for run in range(chosen.runs):
                    loaded = load(lambda: spark, bootstrap, [TOPIC], Warehouse(folder / f"warehouse-{run}"))
                    assert loaded.records == chosen.rows
                    figures.append(round(loaded.records_per_second))
                    print(
                        f"run {run + 1}: {loaded.records:,} rows, {loaded.bytes / 1e6:,.0f} MB of Parquet in "
                        f"{loaded.seconds:.2f} s: {loaded.records_per_second:,.0f} rows/s",
                        file=sys.stderr if chosen.json else sys.stdout,
                    )
            finally:
                spark.stop()
    if chosen.json:
        print(json.dumps({"rows": chosen.rows, "rows_per_second": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
