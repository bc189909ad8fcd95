"""The numbers that plots are drawn from: the script of a page asks for them as long as the page is open."""

import asyncio
import json

from moldau.console.context import ConsoleContext
from moldau.console.web.answers import Answer, PageAnswer
from moldau.console.web.requests import PageRequest
from moldau.names import TopicPartition

JSON = "application/json"


async def topic_pulse(console: ConsoleContext, request: PageRequest, topic: str) -> Answer:
    """The sum of a topic's ends and, if the user may see them, the bytes of its leaders: differences are rates. A sum
    that lacks a partition is null: the next one would have a step that is no traffic."""
    view = (await request.admin.describe_topics([topic]))[topic]
    leaders = {TopicPartition(topic, number): one.leader for number, one in view.partitions.items()}
    ends, sizes = await asyncio.gather(request.admin.ends(leaders), request.admin.known_sizes([topic]))
    records = sum(ends.values()) if ends.keys() == leaders.keys() else None
    if not sizes:
        return _json({"records": records})
    of_leaders = [sizes.get(tp, {}).get(leader) for tp, leader in leaders.items()]
    known = [size for size in of_leaders if size is not None]
    return _json({"records": records, "bytes": sum(known) if len(known) == len(of_leaders) else None})


async def brokers_pulse(console: ConsoleContext, request: PageRequest) -> Answer:
    """How long each broker takes to answer a small request, in ms."""
    times = await request.admin.answer_times()
    return _json({f"broker {broker}": took for broker, took in times.items()})


async def throughput_pulse(console: ConsoleContext, request: PageRequest) -> Answer:
    """Records and bytes per second of the whole cluster: counted by the brokers, if the console was told their metrics,
    or as its partitions grow."""
    if console.request_times:
        await console.request_times.look()
        return _json(console.request_times.traffic)
    return _json(await request.admin.throughput())


async def request_times_pulse(console: ConsoleContext, request: PageRequest) -> Answer:
    """Times of requests by API, over all brokers whose metrics the console was told."""
    await console.request_times.look()
    return _json(console.request_times.series())


async def request_times(console: ConsoleContext, request: PageRequest) -> Answer:
    """The table of all APIs, which the overview loads."""
    await console.request_times.look()
    times = console.request_times
    return console.page(request, "request_times.html", rows=times.rates, problems=times.problems)


def _json(tree: object) -> PageAnswer:
    return PageAnswer(json.dumps(tree).encode(), media_type=JSON)
