"""Moves of partitions to other brokers, with how much of each is copied; each can be cancelled."""

from typing import NamedTuple

from moldau.client.administration.cluster import Reassignment
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.requests import PageRequest, whole_number
from moldau.names import TopicPartition

ROWS = 50
NUMBER_MAX = 2**31 - 1


class MoveRow(NamedTuple):
    """`copied_bytes` are in the replicas that are added, `total_bytes` will be."""

    partition: TopicPartition
    move: Reassignment
    copied_bytes: int
    total_bytes: int


async def moves(console: ConsoleContext, request: PageRequest) -> Answer:
    under_way = sorted((await request.admin.list_reassignments()).items())
    part = paging(request, ROWS, len(under_way))
    shown = part.of(under_way)
    sizes = await request.admin.sizes({tp.topic for tp, _ in shown}) if shown else {}
    rows = []
    for tp, move in shown:
        of_broker = sizes.get(tp, {})
        whole = max((size for broker, size in of_broker.items() if broker not in move.adding), default=0)
        copied = sum(min(of_broker.get(broker, 0), whole) for broker in move.adding)
        rows.append(MoveRow(tp, move, copied, whole * len(move.adding)))
    template = "move_rows.html" if request.is_fragment else "moves.html"
    return console.page(request, template, rows=rows, paging=part)


async def cancel_move(console: ConsoleContext, request: PageRequest) -> Answer:
    number = whole_number("the partition", request.field("partition"), 0, NUMBER_MAX)
    tp = TopicPartition(request.field("topic"), number)
    (error,) = (await request.admin.alter_reassignments({tp: None})).values()
    if error is not None:
        raise error
    return redirection("/moves?done=cancelled")
