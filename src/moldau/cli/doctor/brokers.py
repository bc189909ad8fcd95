"""Facts about a running cluster, asked of its brokers as any client would: addresses, replicas, log folders."""

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from moldau.cli.cluster.status import MIN_IN_SYNC, sick_topics, status_of
from moldau.cli.doctor.checks.addresses import AddressFacts, ConnectionAttempt
from moldau.cli.doctor.checks.log_folders import ServedFolder
from moldau.client.administration.admin import AsyncAdmin
from moldau.client.security.brokers import alike
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.peers.address import Address, bootstrap_addresses

CONNECT_S: Final = 5.0
ANSWER_MS: Final = 10_000
_NUMBERS: Final = re.compile(r"\[Errno (\d+)\]")
TOGETHER: Final = 20
"""Brokers that are connected to at the same time."""
T = TypeVar("T")


class ClusterFacts(NamedTuple):
    """`status` as `moldau cluster status --json` prints it, None if no broker answers. `single`: topics with one
    replica. `errors`: what could not be asked, and why."""

    addresses: AddressFacts
    status: Mapping[str, Any] | None = None
    moving: int = 0
    single: tuple[str, ...] = ()
    folders: tuple[ServedFolder, ...] = ()
    settings: Mapping[int, Mapping[str, str | None]] = {}
    errors: tuple[str, ...] = ()


async def cluster_facts(bootstrap: str) -> ClusterFacts:
    """`bootstrap` has the settings of `--command-config`. Raises `ConfigError` if it is not an address."""
    here = socket.gethostname()
    first = [await attempt(one, bootstrap) for one in bootstrap_addresses(str(bootstrap))]
    works = next((one for one in first if one.works), None)
    if works is None:
        return ClusterFacts(AddressFacts(here, first))
    asked = _Asked(alike(str(works), bootstrap))
    async with asked.admin:
        cluster = await asked(lambda admin: admin.describe_cluster(include_fenced=True), "the brokers that are away")
        if cluster is None:  # without the cluster's store nobody knows those, and everybody those that are up
            cluster = await asked(lambda admin: admin.describe_cluster(), "the cluster")
        if cluster is None:
            return ClusterFacts(AddressFacts(here, first), errors=tuple(asked.errors))
        brokers: dict[int, ConnectionAttempt] = {}
        ids = list(cluster.brokers)
        for start in range(0, len(ids), TOGETHER):
            some = ids[start : start + TOGETHER]
            tried = await asyncio.gather(*(attempt(cluster.brokers[one], bootstrap) for one in some))
            brokers |= dict(zip(some, tried, strict=True))
        addresses = AddressFacts(here, first, brokers, cluster.cluster_id)
        reached = [one for one, attempted in brokers.items() if attempted.works]
        topics = await asked(lambda admin: admin.list_topics(internal=True), "the topics") or {}
        settings = {one: await asked(_settings_of(one), f"the settings of broker {one}") or {} for one in reached}
        sick = sick_topics(topics)
        least = {name: found for name in sick if (found := await _least_in_sync(asked, name))}
        eligible = await asked(lambda admin: admin.describe_eligible_leaders(sick), "the eligible leaders")
        # Only the controller knows them, and it is connected to where it says.
        moving = await asked(lambda admin: admin.list_reassignments(), "the reassignments") if reached else None
        own = next(iter(settings.values()), {})
        status = status_of(cluster, topics, own, least, eligible or {})
        single = tuple(
            name
            for name, one in topics.items()
            if not one.internal and any(len(part.replicas) == 1 for part in one.partitions.values())
        )
        folders = [one for broker in reached for one in await _folders_of(asked, broker)]
    return ClusterFacts(addresses, status, len(moving or ()), single, tuple(folders), settings, tuple(asked.errors))


class _Asked:
    """Asks one question after the other; what is not answered is noted, and None."""

    def __init__(self, bootstrap: str):
        self.admin = AsyncAdmin(bootstrap, default_api_timeout_ms=ANSWER_MS, request_timeout_ms=ANSWER_MS)
        self.errors: list[str] = []

    async def __call__(self, question: Callable[[AsyncAdmin], Awaitable[T]], about: str) -> T | None:
        try:
            return await question(self.admin)
        except MoldauError as error:
            self.errors.append(f"{about} cannot be asked for: {error}")
            return None


def _settings_of(broker: int) -> Callable[[AsyncAdmin], Awaitable[dict[str, str | None]]]:
    async def ask(admin: AsyncAdmin) -> dict[str, str | None]:
        entries = await admin.configs.describe("broker", str(broker))
        return {one.name: None if one.is_sensitive else one.value for one in entries}

    return ask


async def _least_in_sync(asked: _Asked, topic: str) -> int | None:
    entries = await asked(lambda admin: admin.topic_configs(topic), f"the settings of {topic}") or ()
    return next((int(one.value or 1) for one in entries if one.name == MIN_IN_SYNC), None)


async def _folders_of(asked: _Asked, broker: int) -> list[ServedFolder]:
    found = await asked(lambda admin: admin.describe_log_dirs([broker]), f"the log folders of broker {broker}") or {}
    return [
        ServedFolder(
            broker,
            one.path,
            "" if one.error is None else "its disk has failed, or it was away at the start",
            -1 if one.total_bytes is None else one.total_bytes,
            -1 if one.usable_bytes is None else one.usable_bytes,
            sum(not replica.is_future for replica in one.replicas.values()),
            sum(replica.size_bytes for replica in one.replicas.values()),
            sum(replica.is_future for replica in one.replicas.values()),
        )
        for one in found.get(broker, [])
    ]


async def attempt(address: Address, bootstrap: str) -> ConnectionAttempt:
    """Resolve a name, connect, and ask the broker there which cluster it belongs to, with the settings that `bootstrap`
    carries."""
    host, port = address
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_S):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return ConnectionAttempt(host, port, unresolved=_reason(error))
    resolved = tuple(dict.fromkeys(str(one[4][0]) for one in found))
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return ConnectionAttempt(host, port, resolved, unreached=_reason(error))
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    try:
        async with AsyncAdmin(
            alike(str(address), bootstrap), default_api_timeout_ms=ANSWER_MS // 2, request_timeout_ms=ANSWER_MS // 2
        ) as admin:
            cluster = await admin.describe_cluster()
    except KafkaError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return ConnectionAttempt(host, port, resolved)
        return ConnectionAttempt(host, port, resolved, unanswered=str(error))
    return ConnectionAttempt(host, port, resolved, cluster_id=cluster.cluster_id)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_S:g} s"
    if isinstance(error, socket.gaierror) and error.strerror:
        return error.strerror
    # asyncio has the number of the error, or of the error of each address, and a text of its own.
    numbers = [error.errno] if isinstance(error, OSError) and error.errno else map(int, _NUMBERS.findall(str(error)))
    return ", ".join(dict.fromkeys(map(os.strerror, numbers))) or str(error) or type(error).__name__
