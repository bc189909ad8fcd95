"""`moldau perf latency`: one record after the other, from the call of `send` until a consumer has it."""

import random
import time
from typing import Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.measuring.latencies import RecordLatencies
from moldau.cli.options import BOOTSTRAP, BootstrapServer, CommandProperty, Json, client_settings, reachable
from moldau.cli.output import note, print_json
from moldau.client.consuming.consumer import Consumer
from moldau.client.fetching import topic_partitions
from moldau.client.offsets import LATEST
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError
from moldau.names import TopicPartition

ARRIVES_S = 60.0
POLL_MS = 1_000


def latency(
    topic: Annotated[str, Argument("TOPIC", help="The topic to write to and to read; nobody else may write to it.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    num_records: Annotated[int, Option("--num-records", "-n", min=1, help="The number of records.")] = 1_000,
    record_size: Annotated[int, Option(min=1, max=1 << 20, help="The bytes of each value.")] = 100,
    acks: Annotated[str, Option(help="all, 1 or 0.")] = "all",
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> None:
    """
    Print how long a record takes from a producer to a consumer, with percentiles.

    Examples:

      moldau perf latency pings --num-records 10000
    """
    brokers = reachable(bootstrap_server)
    settings = {"client.id": "moldau-perf", **client_settings(brokers, command_property, {})}
    tps = [TopicPartition(topic, number) for number in topic_partitions(brokers, [topic])[topic]]
    found, total_s = RecordLatencies(num_records), 0.0
    with Consumer(settings) as consumer, Producer({"linger.ms": 0, "acks": acks, **settings}) as producer:
        consumer.assign(tps)
        consumer.seek_to(dict.fromkeys(tps, LATEST))
        for number in range(num_records):
            value = random.randbytes(record_size)
            began_s = time.perf_counter()
            producer.send(topic, value)
            _await(consumer, value, began_s)
            took_s = time.perf_counter() - began_s
            found.add(took_s * 1000)
            total_s += took_s
            if not as_json and number % 1000 == 999:
                note(f"{number + 1:,} records, {total_s / (number + 1) * 1000:.2f} ms on average")
    shown = {f"p{one:g}": round(value, 3) for one, value in found.percentiles().items()}
    if as_json:
        print_json(
            {
                "records": found.count,
                "average_ms": round(found.average_ms, 3),
                "max_ms": round(found.max_ms, 3),
                **shown,
            }
        )
    else:
        percentiles = ", ".join(f"{value} ms {name}" for name, value in shown.items())
        print(f"{found.count:,} records, {found.average_ms:.3f} ms average, {found.max_ms:.3f} ms max, {percentiles}")


def _await(consumer: Consumer, value: bytes, began_s: float) -> None:
    """Returns when the record has come. Raises `MoldauError` for another one, and if none comes."""
    while time.perf_counter() - began_s < ARRIVES_S:
        for record in consumer.poll(POLL_MS):
            if record.value != value:
                raise MoldauError(
                    f"offset {record.offset} of {record.topic} is not the record that was sent: does"
                    " somebody else write to the topic?"
                )
            return
    raise MoldauError(f"the record did not come within {ARRIVES_S:g} s")
