"""The overview: brokers and controller at once, then what has to be added up over all topics and groups."""

from collections import Counter

from moldau.console.context import ConsoleContext
from moldau.console.web.answers import Answer
from moldau.console.web.requests import PageRequest


async def overview(console: ConsoleContext, request: PageRequest) -> Answer:
    cluster = await request.admin.describe_cluster()
    return console.page(request, "overview.html", cluster=cluster, has_metrics=bool(console.request_times))


async def health(console: ConsoleContext, request: PageRequest) -> Answer:
    """The counts, which the overview loads."""
    counts = await request.admin.health()
    states = Counter(group.state for group in await request.admin.groups())
    return console.page(request, "overview_health.html", health=counts, states=states)
