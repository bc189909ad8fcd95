"""Topics that mirror those of other clusters, with what this cluster knows: workers, records, the newest record's age.

How far a mirror is behind is not known here: only the source knows where its logs end.
"""

from typing import NamedTuple

from moldau.client.administration.records import MAX_TIMESTAMP
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.asking.mirror_question import FAILING_OVER, WORKERS
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer
from moldau.console.web.requests import PageRequest
from moldau.errors import ErrorCode, GroupIdNotFound, KafkaError
from moldau.names import TopicPartition

ROWS = 50


class MirrorRow(NamedTuple):
    """A mirror; None: not known, or without records."""

    topic: str
    source: str
    partitions: int
    records: int | None
    newest_ms: int | None
    age_s: float | None


class MirrorSource(NamedTuple):
    """A cluster that is mirrored. `workers` is None if the user may not see their group."""

    cluster_id: str
    group_id: str
    topics: int
    workers: int | None


async def mirrors(console: ConsoleContext, request: PageRequest) -> Answer:
    admin = request.admin
    found = sorted((source, topic) for topic, source in (await admin.mirrors()).items())
    part = paging(request, ROWS, len(found))
    ids = [source for source, _ in found]
    sources = [await _source(admin, one, ids.count(one)) for one in sorted(set(ids)) if one != FAILING_OVER]
    rows = await _rows(admin, [(topic, source) for source, topic in part.of(found)])
    template = "mirror_rows.html" if request.is_fragment else "mirrors.html"
    return console.page(request, template, rows=rows, sources=sources, paging=part, failing_over=FAILING_OVER)


async def _source(admin: ClusterAdmin, cluster_id: str, topics: int) -> MirrorSource:
    group_id, workers = f"{WORKERS}{cluster_id}", None
    try:
        workers = len((await admin.describe_group(group_id)).members)
    except GroupIdNotFound:
        workers = 0
    except KafkaError as denied:
        if denied.code is not ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise
    return MirrorSource(cluster_id, group_id, topics, workers)


async def _rows(admin: ClusterAdmin, shown: list[tuple[str, str]]) -> list[MirrorRow]:
    """Topics that are gone since mirrors were asked for have none."""
    views = await admin.topics_named(topic for topic, _ in shown)
    places = [TopicPartition(name, number) for name, view in views.items() for number in view.partitions]
    starts, ends = await admin.starts(places), await admin.ends(places)
    newest = await admin.listed(places, MAX_TIMESTAMP)
    now_ms, rows = admin.now_ms(), []
    for topic, source in shown:
        if topic not in views:
            continue
        own = [tp for tp in places if tp.topic == topic]
        known = [tp for tp in own if tp in starts and tp in ends]
        times = [one.timestamp_ms for tp in own if (one := newest.get(tp)) and one.timestamp_ms is not None]
        newest_ms = max(times, default=None)
        age_s = None if newest_ms is None else max(now_ms - newest_ms, 0) / 1_000
        records = sum(ends[tp] - starts[tp] for tp in known) if known else None
        rows.append(MirrorRow(topic, source, len(own), records, newest_ms, age_s))
    return rows
