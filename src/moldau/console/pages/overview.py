"""The overview: brokers and controller at once, then what has to be added up over all topics and groups."""

from collections import Counter

from moldau.console.context import ConsoleContext
from moldau.console.web.answers import Answer
from moldau.console.web.requests import PageRequest


async def overview(console: ConsoleContext, request: PageRequest) -> Answer:
    cluster, has_metrics = await request.admin.cluster(), bool(console.request_times)
    return console.page(
        request, "overview.html", cluster=cluster, health=None, states={}, away=[], has_metrics=has_metrics
    )


async def health(console: ConsoleContext, request: PageRequest) -> Answer:
    """The brokers again and the counts, which the overview loads."""
    counts = await request.admin.health()
    states = Counter(group.state for group in await request.admin.groups())
    cluster = await request.admin.cluster()
    return console.page(
        request, "overview_health.html", cluster=cluster, health=counts, states=states, away=counts.away(cluster)
    )
