"""Brokers: the list with the space of their disks, and one broker with its log folders and settings, which change."""

import asyncio
import contextlib
from typing import NamedTuple

from moldau.client.administration.cluster import LogDir
from moldau.client.administration.configs import Resource
from moldau.console.context import ConsoleContext
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.paths import path_to
from moldau.console.web.refusing import BAD_REQUEST, NOT_FOUND, PageRefusal
from moldau.console.web.requests import PageRequest, whole_number
from moldau.errors import KafkaError, MoldauError
from moldau.peers.address import Address

BROKER_ID_MAX = 2**31 - 1


class BrokerRow(NamedTuple):
    """`folders` is empty, and `why` a sentence, if the broker does not tell its log folders."""

    id: int
    address: Address
    rack: str | None
    folders: list[LogDir]
    why: str

    @property
    def total_bytes(self) -> int | None:
        return _sum([folder.total_bytes for folder in self.folders])

    @property
    def used_bytes(self) -> int | None:
        usable = _sum([folder.usable_bytes for folder in self.folders])
        return None if usable is None or self.total_bytes is None else self.total_bytes - usable


async def brokers(console: ConsoleContext, request: PageRequest) -> Answer:
    cluster = await request.admin.describe_cluster()

    async def row(broker_id: int) -> BrokerRow:
        folders, why = await _folders(request, broker_id, with_replicas=False)
        return BrokerRow(broker_id, cluster.brokers[broker_id], cluster.racks[broker_id], folders, why)

    rows = await asyncio.gather(*map(row, cluster.brokers))
    away: list[int] = []
    with contextlib.suppress(KafkaError):  # the page is about the brokers that are up
        away = (await request.admin.health()).away(cluster)
    return console.page(request, "brokers.html", cluster=cluster, rows=rows, away=away)


async def broker(console: ConsoleContext, request: PageRequest, number: str) -> Answer:
    return await _broker_page(console, request, number)


async def _broker_page(
    console: ConsoleContext, request: PageRequest, number: str, wrong: str = "", status: int = 200
) -> Answer:
    broker_id = whole_number("the number of a broker", number, 0, BROKER_ID_MAX)
    cluster = await request.admin.describe_cluster()
    if broker_id not in cluster.brokers:
        raise PageRefusal(NOT_FOUND, f"broker {broker_id} is not up in this cluster")
    entries, why_not = [], ""
    try:
        entries = await request.admin.configs.describe(Resource.BROKER, number)
    except KafkaError as denied:
        why_not = request.said(denied)
    return console.page(
        request, "broker.html", status, cluster=cluster, broker_id=broker_id, entries=entries, why_not=why_not,
        wrong=wrong, chosen=request.field("setting") or request.text("setting"),
    )  # fmt: skip


async def change_setting(console: ConsoleContext, request: PageRequest, number: str) -> Answer:
    """Change a setting of the broker while it runs, or the one of all brokers that do not have their own."""
    broker_id = whole_number("the number of a broker", number, 0, BROKER_ID_MAX)
    setting = request.field("setting").strip()
    value = None if request.is_checked("reset") else request.field("value")
    try:
        name = "" if request.is_checked("all") else str(broker_id)
        await request.admin.configs.alter(Resource.BROKER, name, {setting: value})
    except MoldauError as refused:
        return await _broker_page(console, request, number, request.said(refused), BAD_REQUEST)
    return redirection(path_to("brokers", str(broker_id)) + "?done=changed")


async def log_folders(console: ConsoleContext, request: PageRequest, number: str) -> Answer:
    """The part of a broker's page with its log folders, for which the broker looks at each replica."""
    broker_id = whole_number("the number of a broker", number, 0, BROKER_ID_MAX)
    folders, why = await _folders(request, broker_id, with_replicas=True)
    return console.page(request, "broker_folders.html", folders=folders, why=why)


async def _folders(request: PageRequest, broker_id: int, *, with_replicas: bool) -> tuple[list[LogDir], str]:
    admin, topics = request.admin, None if with_replicas else list[str]()

    async def ask() -> list[LogDir]:
        return (await admin.describe_log_dirs([broker_id], topics=topics))[broker_id]

    try:
        found = await ask() if with_replicas else await admin.heard(broker_id, ask)
    except KafkaError as failure:
        return [], request.said(failure)
    return ([], f"broker {broker_id} did not answer in time") if found is None else (found, "")


def _sum(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
