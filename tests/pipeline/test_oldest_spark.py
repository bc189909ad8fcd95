"""The data source on the oldest Spark that it supports, in an environment of its own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import moldau
from harness.patience import stretched
from moldau.pipeline.session import python_path
from tests.environments import python_with

pytestmark = [pytest.mark.check, pytest.mark.own_jvm("it is another Spark")]
PINS = ("pyspark==4.0.0", "pyarrow==20.0.0", "crc32c==2.9.post0", "cramjam==2.14.0", "google-re2==1.1.20251105")
PROGRAM = """
import sys
from pathlib import Path
import pyspark
from moldau.pipeline.session import start_session
from moldau.pipeline.streams.running import run_to_end

bootstrap, source, target, folder = sys.argv[1:]
spark = start_session("oldest", "local[2]", Path(folder, "spark"))
here = {"bootstrapServers": bootstrap}
frame = spark.read.format("moldau").options(**here, subscribe=source, columns="key,value,offset").load()
print(pyspark.__version__, frame.count(), frame.where("offset < 10").count())
frame.drop("offset").write.format("moldau").options(**here, topic=target).mode("append").save()

def stream(**options):
    options = {**here, "subscribe": source, "startingOffsets": "earliest", **options}
    return spark.readStream.format("moldau").options(**options).load()

def copy(frame):
    columns = ["key", "value", "timestamp", "headers"]
    writer = frame.select(*columns).writeStream.format("moldau").options(**here, topic=target)
    writer = writer.option("checkpointLocation", str(Path(folder, "checkpoint"))).trigger(availableNow=True)
    run_to_end(lambda _: writer.start())

for _ in range(2):
    copy(stream())
try:
    copy(stream(maxOffsetsPerTrigger=5))
except Exception as refused:
    print(str(refused).replace(chr(10), " "))
spark.stop()
"""


@pytest.mark.timeout(600)
def test_the_oldest_spark_reads_writes_and_streams(
    bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    source, target = new_topic(2), new_topic(2)
    with moldau.Producer(bootstrap) as producer:
        for n in range(100):
            producer.send(source, f"v{n}", f"k{n}", headers=[("h", b"1")], timestamp_ms=1_700_000_000_000 + n)
    done = subprocess.run(
        [python_with(*PINS), "-c", PROGRAM, bootstrap, source, target, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": python_path(), "PYTHONWARNINGS": "ignore"},
        capture_output=True, text=True, timeout=stretched(200),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("4.0.0 100 20\n")
    assert "Option maxOffsetsPerTrigger needs Spark 4.2 or newer; this is Spark 4.0.0." in done.stdout
    table = moldau.read_table(target, bootstrap)
    assert len(table) == 200, "once by the batch, once by the stream, nothing by its second run"
    streamed = [row for row in table.to_pylist() if row["headers"]]
    assert sorted(row["timestamp"].timestamp() for row in streamed) == [1_700_000_000 + n / 1000 for n in range(100)]
    assert {row["headers"][0]["value"] for row in streamed} == {b"1"}
