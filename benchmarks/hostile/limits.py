"""Every client API at the limits of a broker (`at_limits`): its longest turn of the loop, and its processor time.

No turn may take more than `TURN_MS_MAX` of processor time of the loop's thread (see `probed`). Collections of garbage
come at any time and grow with the heap, not with the request; they are shown beside the turn. The longest wait of
another client includes what the machine does besides.
"""

import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.broker_load import Case, Wire
from benchmarks.hostile import at_limits
from benchmarks.hostile.at_limits import GROUPS, TOPICS, Asked
from benchmarks.hostile.wide import AT_ONCE, Bench, offsets, written
from harness.brokers import Broker
from moldau.protocol import apis, codec
from moldau.protocol.messages.create_topics import CreateTopicsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest

TURN_MS_MAX = 50.0
COORDINATED_BY = (0, 1)
"""The types of coordinators: of groups, of transactions."""
TURN, TIME, COLLECTION = ": longest turn", ": processor time", ": longest collection"
WAIT, ERRORS = ": longest wait of others", ": errors"


def fill(bench: Bench) -> None:
    """Make the topics and the groups."""
    for first in range(0, TOPICS, AT_ONCE):
        new = [at_limits.new(at_limits.topic(number)) for number in range(first, first + AT_ONCE)]
        bench.all([written(apis.CREATE_TOPICS, 7, CreateTopicsRequest(topics=new, timeout_ms=at_limits.ASKED_MS))])
    for kind in COORDINATED_BY:
        asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=["wide"])
        bench.all([written(apis.FIND_COORDINATOR, 6, asked)])
    for first in range(0, GROUPS, AT_ONCE):
        groups = [offsets(at_limits.topic(n), [0], at_limits.topic(n % TOPICS)) for n in range(first, first + AT_ONCE)]
        bench.all([written(apis.OFFSET_COMMIT, 9, one) for one in groups])


def producer(port: int) -> tuple[int, int]:
    """The id and the epoch of the transactional producer `wide`."""
    asked = InitProducerIdRequest(transactional_id="wide", transaction_timeout_ms=60_000)
    api, version, frame = written(apis.INIT_PRODUCER_ID, 4, asked)
    with Wire(port) as wire:
        while (reply := wire.ask(api, version, frame)).error_code:
            time.sleep(0.05)
    return reply.producer_id, reply.producer_epoch


def errors(asked: Asked, reply: bytes | None) -> int:
    """How many errors the reply has; -1 without a reply."""
    return -1 if reply is None else _errors(codec.read_reply(asked.api, asked.version, reply))


def _errors(message: Any) -> int:
    if isinstance(message, list):
        return sum(map(_errors, message))
    if not dataclasses.is_dataclass(message):
        return 0
    values = ((field.name, getattr(message, field.name)) for field in dataclasses.fields(message))
    return sum(bool(value) if name.endswith("error_code") else _errors(value) for name, value in values)


def everything(port: int) -> Iterator[Asked]:
    yield from at_limits.about_everything()
    yield from at_limits.generated()
    yield from at_limits.consumer_groups()
    yield from at_limits.in_a_transaction(*producer(port))
    yield from at_limits.changes()


def cases(start: Callable[..., AbstractContextManager[Broker]]) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe"
        program, environment = ("benchmarks.hostile.probed",), {"MOLDAU_PROBE": str(probe)}
        with start(program=program, environment=environment) as broker:
            port = int(broker.address.rpartition(":")[2])
            bench = Bench(port, probe)
            fill(bench)
            for asked in everything(port):
                made = [written(asked.api, asked.version, message)[2] for message in asked.messages]
                cost = bench.cost(made)
                yield Case(asked.name + TURN, cost.longest_ms, "ms")
                yield Case(asked.name + TIME, cost.processor_ms, "ms")
                yield Case(asked.name + COLLECTION, cost.collection_ms, "ms")
                yield Case(asked.name + WAIT, cost.waited_ms, "ms")
                yield Case(asked.name + ERRORS, errors(asked, cost.reply), "errors")


def table(figures: Mapping[str, Sequence[Case]]) -> Table:
    """One row for each request, with the least of its times in all rounds."""
    shown = Table("request", "longest turn", "processor time", "collection", "others waited", "errors", "verdict")
    shown.title = f"Requests at the limits: {TOPICS:,} topics, {GROUPS:,} groups"
    for name in figures:
        if name.endswith(TURN):
            request = name.removesuffix(TURN)
            times = [min(case.value for case in figures[request + kind]) for kind in (TURN, TIME, COLLECTION, WAIT)]
            refused = f"{figures[request + ERRORS][0].value:,.0f}"
            verdict = "ok" if times[0] <= TURN_MS_MAX else "too long"
            shown.add_row(request, *(f"{time_ms:,.0f} ms" for time_ms in times), refused, verdict)
    for column in shown.columns[1:]:
        column.justify = "right"
    return shown
