"""What a Python worker of Spark imports until its first rows of a topic, and what its garbage collections visit."""

import subprocess
import sys
from collections.abc import Callable

from harness.patience import stretched
from moldau.client.producing.producer import Producer

SCRIPT = """
import gc, sys

import pyspark.worker  # what the worker has imported before

before = set(sys.modules)
import moldau.pipeline.data_source
from moldau.names import TopicPartition
from moldau.pipeline.options import Options, TopicSelection
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.source.filters import Narrowing
from moldau.pipeline.source.reading import RangePartition, read_range

address, topic = sys.argv[1:]
part = RangePartition(OffsetRange(topic, 0, 0, 10))
options = Options(bootstrap_servers=address, subscription=TopicSelection((topic,)))
for narrowing in (None, Narrowing(time_low_us=0, time_high_us=1 << 60)):
    print(sum(batch.num_rows for batch in read_range(options, part, narrowing)))
unwanted = {"asyncio", "ssl", "pandas", "moldau.client.routing", "moldau.client.consuming.consumer_settings"}
print(sorted(unwanted & set(sys.modules) - before))
print(gc.get_freeze_count() > 10_000)
"""


def test_a_worker_starts_without_an_event_loop_and_pandas_and_collects_no_garbage_of_imports(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    with Producer(bootstrap) as producer:
        producer.send_many(topic, [b"v"] * 10).result(stretched(10))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, bootstrap, topic], capture_output=True, text=True, timeout=stretched(60)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["10", "10", "[]", "True"]
