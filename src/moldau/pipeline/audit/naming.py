"""Names the records that make windows wrong: reads those windows once more, from the origin and from the tier.

Only a window that is complete in the origin says what another tier lacks: in one whose records have expired there, all
the others would seem doubled. In the origin itself, equal records are named; what is missing there is nowhere else.
Memory is bounded by `COMPARED_MAX` records of each of the two; windows beyond that are judged by their counts alone,
and a note says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow
import pyarrow.compute as compute

from moldau.errors import KafkaError
from moldau.names import counted
from moldau.pipeline.audit.comparing import Difference, differences, repeated
from moldau.pipeline.audit.reconciling import COMPLETE, MISSING, TierBook, TopicBook, WindowBook
from moldau.pipeline.audit.tiers import PLACES, HasPlaces, Tier

COMPARED_MAX = 2_000_000


class _Changed(Exception):
    """A window has other records than when it was counted."""


def with_differences(book: TopicBook, tiers: Sequence[Tier], window_ms: int) -> TopicBook:
    """The book with the records that are missing or doubled in each tier, where they can be named. The first tier is
    the origin. Raises `MoldauError` if a tier cannot be read."""
    if not tiers or not isinstance(tiers[0], HasPlaces):
        return book
    complete = {window.start_ms for window in book.tiers[0].windows if window.state == COMPLETE}
    named = []
    for tier_book, tier in zip(book.tiers, tiers, strict=True):
        if tier is tiers[0]:
            wrong = [window for window in tier_book.wrong_before_stop if window.state != MISSING]
        else:
            wrong = [window for window in tier_book.wrong_before_stop if window.start_ms in complete]
        if isinstance(tier, HasPlaces) and wrong:
            tier_book = _named(book.topic, tier_book, wrong, tiers[0], tier, window_ms)
        named.append(tier_book)
    return replace(book, tiers=named)


def _named(
    topic: str, book: TierBook, wrong: Sequence[WindowBook], origin: HasPlaces, tier: HasPlaces, window_ms: int
) -> TierBook:
    chosen, notes = _first(wrong), [*book.notes]
    if len(chosen) < len(wrong):
        notes.append(
            f"{tier.name}: the missing and doubled records of {counted(len(wrong) - len(chosen), 'wrong window')} of "
            f"{topic} are not named, since no more than {COMPARED_MAX:,} records are compared: use a shorter --window."
        )
    try:
        differences = _differences(topic, chosen, origin, tier, window_ms) if chosen else {}
    except (KafkaError, _Changed) as failure:
        notes.append(f"{tier.name}: the missing and doubled records of {topic} cannot be named: {failure}.")
        differences = {}
    windows = [replace(window, differences=differences.get(window.start_ms, ())) for window in book.windows]
    return replace(book, windows=windows, notes=notes)


def _differences(
    topic: str, windows: Sequence[WindowBook], origin: HasPlaces, tier: HasPlaces, window_ms: int
) -> dict[int, list[Difference]]:
    starts = [window.start_ms for window in windows]
    there = _read(tier, topic, window_ms, starts)
    here = there if tier is origin else _read(origin, topic, window_ms, starts)
    by_window = {}
    for window in windows:
        ours, theirs = (table.filter(compute.equal(table["window"], window.start_ms)) for table in (here, there))
        if theirs.num_rows != window.found.records or (tier is not origin and ours.num_rows != window.expected.records):
            raise _Changed("their windows have changed meanwhile; start the audit again")
        by_window[window.start_ms] = (
            repeated((origin.name, ours)) if tier is origin
            else differences((origin.name, ours), (tier.name, theirs), of_origin=tier.of_origin)
        )  # fmt: skip
    return by_window


def _first(windows: Sequence[WindowBook]) -> list[WindowBook]:
    """The first windows that together have at most `COMPARED_MAX` records; one that is too large is passed over."""
    chosen, records = [], 0
    for window in windows:
        size = max(window.found.records, window.expected.records)
        if records + size <= COMPARED_MAX:
            chosen.append(window)
            records += size
    return chosen


def _read(tier: HasPlaces, topic: str, window_ms: int, starts: Sequence[int]) -> Any:
    batches, records = [], 0
    for batch in tier.places(topic, window_ms, starts):
        records += batch.num_rows
        if records > 2 * COMPARED_MAX:
            raise _Changed("their windows grow; start the audit again")
        batches.append(batch)
    return pyarrow.Table.from_batches(batches, PLACES)
