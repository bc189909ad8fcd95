"""What the first read and the first send of a process import."""

import subprocess
import sys

from harness.patience import stretched

SCRIPT = """
import sys

def say(way):
    print(way, "pandas" in sys.modules)

import pyarrow as pa

import moldau
from moldau.names import TopicPartition

address, topic = sys.argv[1:]
tp = TopicPartition(topic, 0)
data = b"".join(b"%03d" % number for number in range(100))
offsets = b"".join((3 * number).to_bytes(4, "little") for number in range(101))
column = pa.Array.from_buffers(pa.binary(), 100, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
table = pa.Table.from_batches([pa.RecordBatch.from_arrays([column], names=["value"])])
with moldau.Producer(address) as producer:
    producer.send_table(topic, table, partition=0).result()
    say("send_table")
    producer.send_table(topic, table, key="value").result()
    say("send_table with keys")
    producer.send_many(topic, ["a", "b"], keys=[b"k", None]).result()
    say("send_many")
with moldau.Consumer(address, auto_offset_reset="earliest") as consumer:
    consumer.assign([tp])
    got = next(iter(consumer.tables()))
    say(f"tables, {len(got) > 0}")
say(f"read_table of {len(moldau.read_table(topic, address))}")
"""


def test_no_read_and_no_send_of_columns_loads_pandas(bootstrap: str, topic: str) -> None:
    command = [sys.executable, "-c", SCRIPT, bootstrap, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "send_table False",
        "send_table with keys False",
        "send_many False",
        "tables, True False",
        "read_table of 202 False",
    ]
