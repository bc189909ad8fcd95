"""`moldau perf produce`: send records as fast as asked, and tell how long each waited for its acknowledgement."""

import random
import time
from pathlib import Path
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Option
from moldau.cli.measuring.latencies import MB, PROGRESS_S, LoadPace, RecordLatencies
from moldau.cli.options import BOOTSTRAP, BootstrapServer, CommandProperty, Json, client_settings, reachable
from moldau.cli.output import note, print_json
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, MoldauError

PAYLOADS_MAX = 100_000
DRAWN_BYTES = 1 << 20
"""Of all values that are drawn before the load begins."""


def produce(
    topic: Annotated[str, Argument("TOPIC", help="The topic to write to.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    num_records: Annotated[int, Option("--num-records", "-n", min=1, help="The number of records.")] = 100_000,
    record_size: Annotated[int, Option(min=0, max=1 << 30, help="The bytes of each value.")] = 100,
    payload_file: Annotated[
        Path | None, Option(metavar="FILE", help="Draw values from the lines of this file instead.")
    ] = None,
    throughput: Annotated[float, Option(help="Records a second; -1, the default, is as fast as possible.")] = -1,
    warmup_records: Annotated[
        int, Option(min=0, help="The first records that are left out of the figures at the end.")
    ] = 0,
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> int:
    """
    Send records and print their rate and latency: every 5 s, and at the end with percentiles. The exit code is 1 if a
    record was not delivered.

    Examples:

      moldau perf produce events --num-records 1000000 --record-size 200

      moldau perf produce events --throughput 5000 --command-property acks=1 --command-property linger.ms=0 --json
    """
    if warmup_records >= num_records:
        raise ConfigError("--warmup-records leaves nothing to measure: it must be below --num-records")
    payloads = _lines(payload_file) if payload_file else _drawn(record_size)
    settings = client_settings(reachable(bootstrap_server), command_property, {})
    load = _Load(num_records, warmup_records, shows_progress=not as_json)
    with Producer({"client.id": "moldau-perf", **settings}) as producer:
        load.run(producer, topic, payloads, throughput)
    figures = load.figures()
    if as_json:
        print_json(figures)
    else:
        print(_sentence(figures))
    if load.failed:
        note(f"error: {load.failed:,} records not delivered: {load.reason}")
    return int(bool(load.failed))


def _drawn(size: int) -> list[bytes]:
    """Values of capital letters, which compress about as well as Kafka's tool's do."""
    count = max(1, min(PAYLOADS_MAX, DRAWN_BYTES // max(size, 1), 1_000))
    return [bytes(random.choices(range(65, 91), k=size)) for _ in range(count)]


def _lines(file: Path) -> list[bytes]:
    """Raises `ConfigError`, `OSError`."""
    with file.open("rb") as lines:
        payloads = [line.rstrip(b"\r\n") for line, _ in zip(lines, range(PAYLOADS_MAX), strict=False)]
    if not payloads:
        raise ConfigError(f"{file} is empty")
    return payloads


class _Load:
    """One run; latencies arrive in the producer's thread."""

    def __init__(self, count: int, warmup: int, *, shows_progress: bool):
        self._count, self._warmup = count, warmup
        self._latencies = RecordLatencies(count - warmup)
        self._shows_progress = shows_progress
        self._bytes = 0
        self._measured_from_s = self._ended_s = 0.0
        self.failed, self.reason = 0, ""

    def run(self, producer: Producer, topic: str, payloads: list[bytes], throughput: float) -> None:
        """Returns when every record is delivered or has failed."""
        clock = time.perf_counter
        began_s = self._measured_from_s = shown_s = clock()
        pace = LoadPace(throughput, began_s)
        shown, draw = 0, random.Random(0)
        for number in range(self._count):
            if number == self._warmup:
                self._measured_from_s = clock()
            value = payloads[0] if len(payloads) == 1 else draw.choice(payloads)
            wait_s = pace.wait_s(number, clock())
            if wait_s > 0:
                time.sleep(wait_s)
            sent_s = clock()
            producer.send(topic, value, on_delivery=self._reporter(sent_s, len(value), number >= self._warmup))
            if self._shows_progress and sent_s - shown_s >= PROGRESS_S:
                per_second = (number + 1 - shown) / (sent_s - shown_s)
                note(f"{number + 1:,} records sent, {per_second:,.1f} records/s, {self._latencies.max_ms:.1f} ms max")
                shown, shown_s = number + 1, sent_s
        try:
            producer.flush()
        except MoldauError as error:
            self.reason = self.reason or str(error)
        self._ended_s = clock()

    def _reporter(self, sent_s: float, size: int, counts: bool) -> Any:
        def report(error: MoldauError | None, _: object) -> None:
            if error is not None:
                self.failed += 1
                self.reason = self.reason or str(error)
            elif counts:
                self._latencies.add((time.perf_counter() - sent_s) * 1000)
                self._bytes += size

        return report

    def figures(self) -> dict[str, Any]:
        took_s = max(self._ended_s - self._measured_from_s, 1e-9)
        found = self._latencies
        return {
            "records": found.count,
            "failed": self.failed,
            "seconds": round(took_s, 3),
            "records_per_second": round(found.count / took_s, 1),
            "mb_per_second": round(self._bytes / MB / took_s, 2),
            "latency_ms": {
                "average": round(found.average_ms, 2),
                "max": round(found.max_ms, 2),
                **{f"p{one:g}": round(value, 2) for one, value in found.percentiles().items()},
            },
        }


def _sentence(figures: dict[str, Any]) -> str:
    latency = dict(figures["latency_ms"])
    average, largest = latency.pop("average"), latency.pop("max")
    rate = f"{figures['records_per_second']:,.1f} records/s ({figures['mb_per_second']:.2f} MB/s)"
    shown = ", ".join(f"{value} ms {name}" for name, value in latency.items())
    return f"{figures['records']:,} records sent, {rate}, {average} ms average latency, {largest} ms max, {shown}"
