"""Transactions: those that coordinators know, and one of them with its partitions."""

from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer
from moldau.console.web.requests import PageRequest
from moldau.runtime import RealClock

ROWS = 100
STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Empty")


async def transactions(console: ConsoleContext, request: PageRequest) -> Answer:
    wanted, state = request.text("q").strip().lower(), request.text("state")
    states = [state] if state in STATES else []
    found = [
        one for one in await request.admin.transactions.list(states=states) if wanted in one.transactional_id.lower()
    ]
    part = paging(request, ROWS, len(found))
    return console.page(
        request,
        "transactions.html",
        rows=part.of(found),
        paging=part,
        asked=request.text("q").strip()[:250],
        state=state,
        states=STATES,
    )


async def transaction(console: ConsoleContext, request: PageRequest, transactional_id: str) -> Answer:
    one = await request.admin.transactions.describe(transactional_id)
    open_s = None if one.start_ms is None else max(RealClock().now_ms() - one.start_ms, 0) / 1_000
    return console.page(request, "transaction.html", transaction=one, open_s=open_s)
