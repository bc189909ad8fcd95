"""The audit of some topics: reads the producers' reports and every tier, and compares them."""

from collections.abc import Sequence

from moldau.errors import KafkaError, MoldauError, UnknownTopicOrPartition
from moldau.pipeline.audit.naming import with_differences
from moldau.pipeline.audit.produced import produced
from moldau.pipeline.audit.reconciling import Books, reconcile
from moldau.pipeline.audit.tiers import Tier
from moldau.pipeline.audit.windows import Digests
from moldau.runtime import Runtime


class AuditFailed(MoldauError):
    """The audit could not read the reports or a tier."""


def audit(
    bootstrap: str,
    topics: Sequence[str],
    tiers: Sequence[Tier],
    *,
    audit_topic: str,
    window_ms: int,
    runtime: Runtime | None = None,
) -> Books:
    """Compare each tier with what the producers of these topics had acknowledged. The first tier is the origin; what
    is wrong in another one is named by comparing the two.

    The reports are read last, so a record that a tier holds is in them once its producer has sent its counts. A tier
    without the topic holds nothing of it. Raises `MoldauError`.
    """
    now_ms = (runtime or Runtime()).clock.now_ms()
    held = {topic: [(tier.name, *_held(tier, topic, window_ms)) for tier in tiers] for topic in topics}
    try:
        reports = produced(bootstrap, audit_topic, topics, window_ms)
    except UnknownTopicOrPartition:
        raise AuditFailed(
            f"No producer has reported to topic {audit_topic}: give producers the setting audit_topic={audit_topic} "
            "before they write what is audited, or name the topic of their reports with --audit-topic."
        ) from None
    except KafkaError as failure:
        raise AuditFailed(f"The producers' reports in topic {audit_topic} cannot be read: {failure}.") from None
    books = [reconcile(topic, reports.topics[topic], held[topic], window_ms, now_ms) for topic in topics]
    return Books([with_differences(book, tiers, window_ms) for book in books], window_ms, reports.notes())


def _held(tier: Tier, topic: str, window_ms: int) -> tuple[Digests, list[str]]:
    try:
        return tier.digests(topic, window_ms)
    except KafkaError as failure:
        return {}, [f"{tier.name}: {failure}."]
