"""`moldau perf consume`: read records as fast as they come."""

import time
import uuid
from typing import Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.measuring.latencies import MB, PROGRESS_S
from moldau.cli.options import BOOTSTRAP, BootstrapServer, CommandProperty, Json, client_settings, reachable
from moldau.cli.output import note, print_json
from moldau.client.consuming.consumer import Consumer

POLL_MS, POLL_RECORDS = 100, 10_000


def consume(
    topic: Annotated[str, Argument("TOPIC", help="The topic to read.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    num_records: Annotated[int, Option("--num-records", "-n", min=1, help="The number of records.")] = 100_000,
    group: Annotated[str, Option(metavar="NAME", help="The group; a new one by default.")] = "",
    from_latest: Annotated[bool, Option("--from-latest", help="Begin at the end if the group has no offsets.")] = False,
    timeout: Annotated[float, Option(metavar="SECONDS", min=0, help="Stop after this time without a record.")] = 10.0,
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> int:
    """
    Read records as a member of a group and print their rate: every 5 s, and at the end, with the time until the first
    assignment. The exit code is 1 if fewer records came than asked for.

    Examples:

      moldau perf consume events --num-records 1000000
    """
    given = {
        "group_id": group or f"moldau-perf-{uuid.uuid4().hex[:8]}",
        "auto_offset_reset": "latest" if from_latest else "earliest",
    }
    settings = client_settings(reachable(bootstrap_server), command_property, given)
    clock = time.perf_counter
    count = size = shown = 0
    assigned_s: list[float] = []
    with Consumer({"client.id": "moldau-perf", **settings}) as consumer:
        began_s = shown_s = last_s = clock()
        consumer.subscribe([topic], on_assigned=lambda _: assigned_s.append(clock()))
        while count < num_records and clock() - last_s < timeout:
            records = consumer.poll(POLL_MS, min(POLL_RECORDS, num_records - count))
            if not records:
                continue
            last_s = clock()
            count += len(records)
            size += sum(len(record.key or b"") + len(record.value or b"") for record in records)
            if not as_json and last_s - shown_s >= PROGRESS_S:
                note(f"{count:,} records read, {(count - shown) / (last_s - shown_s):,.1f} records/s")
                shown, shown_s = count, last_s
    joining_s = assigned_s[0] - began_s if assigned_s else 0.0
    fetching_s = max(last_s - began_s - joining_s, 1e-9)
    figures = {
        "records": count,
        "mb": round(size / MB, 4),
        "seconds": round(last_s - began_s, 3),
        "assignment_seconds": round(joining_s, 3),
        "records_per_second": round(count / fetching_s, 1),
        "mb_per_second": round(size / MB / fetching_s, 2),
    }
    if as_json:
        print_json(figures)
    else:
        rate = f"{figures['records_per_second']:,.1f} records/s ({figures['mb_per_second']:.2f} MB/s)"
        print(f"{count:,} records read, {rate}, after {figures['assignment_seconds']} s until the assignment")
    if count < num_records:
        note(f"{count:,} of {num_records:,} records came, then none within {timeout:g} s")
    return int(count < num_records)
