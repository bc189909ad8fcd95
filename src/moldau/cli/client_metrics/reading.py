"""`moldau client-metrics read`: what clients have pushed, a line for each value."""

import json
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

from moldau.cli.client_metrics.otlp import NotMetrics, metric_values
from moldau.cli.command_line import Argument, Option
from moldau.cli.consuming.beginning import beginning_of
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, time_text
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.fetching import topic_partitions
from moldau.names import TopicPartition

POLL_MS, POLL_RECORDS = 200, 200


def read(
    topic: Annotated[str, Argument("TOPIC", help="The topic of client.metrics.topic.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    from_beginning: Annotated[bool, Option("--from-beginning", help="Also print earlier pushes.")] = False,
    from_time: Annotated[
        str, Option(metavar="TIME", help="Begin with what was pushed at or after this time, or a duration ago.")
    ] = "",
    max_pushes: Annotated[
        int | None, Option("--max-pushes", "-n", min=0, help="Stop after this number of pushes.")
    ] = None,
    timeout: Annotated[
        float | None, Option(metavar="SECONDS", min=0, help="Stop after this time without a new push.")
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Print the metrics that clients push, one value on each line: the time, the client's id, the metric with its
    attributes, and the value. It runs until Ctrl-C, SIGTERM, --max-pushes or --timeout. Needs the extra `telemetry`.

    Examples:

      moldau client-metrics read client-metrics --from-beginning --timeout 5

      moldau client-metrics read client-metrics --from-time 1h --json
    """
    begin = beginning_of(from_beginning, from_time, None, None, None, "")
    list(metric_values(b""))  # say at once what is missing
    brokers = reachable(bootstrap_server)
    partitions = [TopicPartition(topic, number) for number in topic_partitions(brokers, [topic])[topic]]
    with Consumer(brokers, client_id="moldau-client-metrics") as consumer:
        begin.seek(consumer, partitions)
        pushes, last_s = 0, time.monotonic()
        while max_pushes is None or pushes < max_pushes:
            left = POLL_RECORDS if max_pushes is None else min(POLL_RECORDS, max_pushes - pushes)
            records = consumer.poll(POLL_MS, left)
            for record in records:
                sys.stdout.write("".join(_lines(record, as_json)))
            sys.stdout.flush()
            if records:
                pushes, last_s = pushes + len(records), time.monotonic()
            elif timeout is not None and time.monotonic() - last_s >= timeout:
                break


def _lines(record: Record, as_json: bool) -> Iterator[str]:
    known = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    when = time_text(record.timestamp_ms)
    try:
        for one in metric_values(record.value or b""):
            if as_json:
                row: dict[str, Any] = {**known, "time": when, **one._asdict()}
                yield json.dumps(row, ensure_ascii=False) + "\n"
            else:
                attributes = ",".join(f"{key}={value}" for key, value in one.attributes.items())
                name = f"{one.name}{{{attributes}}}" if attributes else one.name
                count = "" if one.times is None else f" of {one.times:,}"
                yield f"{when}  {known.get('client_id', '')}  {name}  {one.value}{count}\n"
    except NotMetrics as why:
        note(f"warning: what {known.get('client_id', '?')} pushed at {when} is left out: {why}")
