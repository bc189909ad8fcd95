"""`moldau verifiable produce`: numbers, one record each, and a line for each acknowledgement."""

import itertools
import time
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Option
from moldau.cli.measuring.latencies import LoadPace
from moldau.cli.options import BOOTSTRAP, BootstrapServer, CommandProperty, client_settings, reachable
from moldau.cli.verifying.events import ENDED, STARTED, EventLines, content
from moldau.client.producing.delivery import Delivered
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError, NotDelivered


def produce(
    topic: Annotated[str, Argument("TOPIC", help="The topic to write to.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    max_messages: Annotated[
        int, Option("--max-messages", "-n", min=-1, help="Stop after this number; -1, the default: at SIGTERM.")
    ] = -1,
    throughput: Annotated[float, Option(help="Records a second; -1, the default, is as fast as possible.")] = -1,
    acks: Annotated[str, Option(help="all (the default), 1 or 0.")] = "all",
    value_prefix: Annotated[
        int | None, Option(metavar="NUMBER", help="Values are NUMBER.n instead of n, for one of several producers.")
    ] = None,
    repeating_keys: Annotated[
        int | None, Option(min=1, metavar="COUNT", help="Keys 0 to COUNT-1 in turn; none by default.")
    ] = None,
    message_create_time: Annotated[
        int | None, Option(min=0, metavar="MS", help="The first record's timestamp; the clock adds to it.")
    ] = None,
    command_property: CommandProperty = None,
) -> int:
    """
    Produce 0, 1, 2 ... and print a line of JSON for each record: producer_send_success with its place, or
    producer_send_error. The last line is tool_data: sent, acked and the rate. The exit code is 1 if a record failed.

    Examples:

      moldau verifiable produce events --max-messages 1000 --throughput 100
    """
    settings = client_settings(reachable(bootstrap_server), command_property, {"acks": acks})
    events, run = EventLines(), _Run()
    prefix = "" if value_prefix is None else f"{value_prefix}."
    producer = Producer({"client.id": "moldau-verifiable-producer", **settings})
    events.tell(STARTED)
    began_s = time.monotonic()
    pace = LoadPace(throughput, began_s)
    try:
        with producer:
            for number in itertools.count() if max_messages < 0 else range(max_messages):
                if (wait_s := pace.wait_s(number, time.monotonic())) > 0:
                    time.sleep(wait_s)
                key = str(number % repeating_keys).encode() if repeating_keys else None
                value = f"{prefix}{number}".encode()
                passed_ms = int((time.monotonic() - began_s) * 1000)
                created_ms = None if message_create_time is None else message_create_time + passed_ms
                told = run.reporter(events, topic, key, value)
                run.sent += 1
                producer.send(topic, value, key, timestamp_ms=created_ms, on_delivery=told)
    except NotDelivered:
        pass  # each was told
    finally:
        took_s = max(time.monotonic() - began_s, 1e-9)
        events.tell(ENDED)
        events.tell(
            "tool_data",
            sent=run.sent, acked=run.acked, target_throughput=throughput, avg_throughput=run.acked / took_s,
        )  # fmt: skip
    return int(run.acked < run.sent)


class _Run:
    """What was sent and acknowledged."""

    def __init__(self) -> None:
        self.sent = self.acked = 0

    def reporter(self, events: EventLines, topic: str, key: bytes | None, value: bytes) -> Any:
        def told(error: MoldauError | None, at: Delivered | None) -> None:
            of = {**content("key", key), **content("value", value)}
            if error is not None or at is None:
                kind = type(error).__name__
                events.tell("producer_send_error", topic=topic, **of, exception=kind, message=str(error))
                return
            self.acked += 1
            events.tell("producer_send_success", **of, offset=at.offset, topic=at.topic, partition=at.partition)

        return told
