"""`moldau pipeline audit`: compare what producers had acknowledged with what every tier holds."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json, print_table
from moldau.cli.pipeline_needs import need
from moldau.errors import ConfigError

if TYPE_CHECKING:
    from moldau.pipeline.audit.reconciling import Books

FAULTS_SHOWN = 20


def audit(
    topics: Annotated[str, Option(metavar="TOPIC,...", help="The topics, separated by commas.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    mirror: Annotated[
        str | None, Option(metavar="HOST:PORT", help="A cluster that should hold the same records.")
    ] = None,
    warehouse: Annotated[str | None, Option(help="The folder or URL of a warehouse that holds the topics.")] = None,
    audit_topic: Annotated[str, Option(help="The topic with the producers' reports.")] = "_audit",
    window: Annotated[str, Option(metavar="10m", help="The length of a window: 30s, 10m, 1h or 1d.")] = "10m",
    page: Annotated[Path | None, Option(metavar="FILE", help="Write the report as an HTML page, too.")] = None,
    as_json: Json = False,
) -> int:
    """
    Compare the acknowledged records of producers with the records in every tier, in windows of event time.

    The producers need the setting audit_topic. The exit code is 0 only if every topic has a window that has ended, and
    every tier holds every record of these windows, and none twice.

    Examples:

      moldau pipeline audit --topics orders,payments

      moldau pipeline audit --topics orders --mirror backup:9092 --warehouse /data/warehouse --page audit.html
    """
    from moldau.client.security.brokers import alike
    from moldau.mirror.status import are_mirrors
    from moldau.pipeline.audit.windows import window_ms

    names = list(dict.fromkeys(name.strip() for name in topics.split(",") if name.strip()))
    if not names:
        raise ConfigError("--topics names no topic")
    length_ms = window_ms(window)
    need("pyarrow", *(["deltalake"] if warehouse is not None else []), extra="arrow" if warehouse is None else "lake")
    from moldau.pipeline.audit.auditing import audit as compare
    from moldau.pipeline.audit.tiers import ClusterTier, Tier

    tiers: list[Tier] = [ClusterTier("origin", reachable(bootstrap_server))]
    if mirror:
        there = reachable(alike(mirror, bootstrap_server))
        tiers.append(ClusterTier("mirror", there, of_origin=asyncio.run(are_mirrors(bootstrap_server, there, names))))
    if warehouse is not None:
        from moldau.pipeline.audit.warehouse_tier import WarehouseTier

        tiers.append(WarehouseTier(warehouse))
    books = compare(bootstrap_server, names, tiers, audit_topic=audit_topic, window_ms=length_ms)
    if page is not None:
        from moldau.pipeline.audit.report import render

        try:
            page.write_text(render(books), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--page {page} cannot be written: {error.strerror}") from None
    if as_json:
        print_json(books.to_tree())
    else:
        _print(books)
    return 0 if books.complete else 1


def _print(books: "Books") -> None:
    from moldau.pipeline.audit.reconciling import COMPLETE, OPEN

    heads = [
        "topic", "tier", "acknowledged", "found", "windows", "complete", "wrong", "open", "late", "replayed",
        "p99 delay",
    ]  # fmt: skip
    rows = []
    for book in books.topics:
        p99 = book.expected.delay_ms(0.99)
        for tier in book.tiers:
            states = [window.state for window in tier.windows]
            rows.append(
                [book.topic, tier.name, book.expected.records, tier.found,
                 len(states), states.count(COMPLETE), len(tier.wrong), states.count(OPEN), book.expected.late,
                 book.replayed, None if p99 is None else f"{p99} ms"]
            )  # fmt: skip
    print_table(heads, rows)
    for sentence in [*books.notes, *(one for book in books.topics for tier in book.tiers for one in tier.notes)]:
        note(sentence)
    faults = list(books.sentences())
    for sentence in faults[:FAULTS_SHOWN]:
        print(sentence)
    if len(faults) > FAULTS_SHOWN:
        print(f"and {len(faults) - FAULTS_SHOWN:,} more: --json has all of them")
    if not faults:
        print("complete: every tier holds every acknowledged record of the windows that have ended, once")
