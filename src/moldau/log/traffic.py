"""What moves through this broker, by topic: numbers that the hot path adds to, and metrics read.

All replicas of a topic here share one `Traffic`. The numbers begin with the broker and never go back; those of a topic
that this broker does not host any more stay in `AllTraffic.gone`, so that its sums do not go back either.
"""

from typing import Final

FIELDS: Final = (
    "records_in", "bytes_in", "bytes_out", "produces", "failed_produces", "fetches", "failed_fetches",
    "replicated_out", "replicated_in", "isr_shrinks", "isr_expands", "isr_refused",
)  # fmt: skip


class Traffic:
    """Records and bytes that clients have appended (`records_in`, `bytes_in`) and read (`bytes_out`), and followers
    (`replicated_out`); what this broker's followers have taken (`replicated_in`); batches and partitions asked for;
    changes of the in-sync replicas of partitions that this broker led then."""

    __slots__ = FIELDS

    def __init__(self) -> None:
        for name in FIELDS:
            setattr(self, name, 0)

    records_in: int
    bytes_in: int
    bytes_out: int
    produces: int
    failed_produces: int
    fetches: int
    failed_fetches: int
    replicated_out: int
    replicated_in: int
    isr_shrinks: int
    isr_expands: int
    isr_refused: int

    def copy(self) -> "Traffic":
        copied = Traffic()
        copied.add(self)
        return copied

    def add(self, other: "Traffic") -> None:
        for name in FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class AllTraffic:
    """`by_topic`: of the topics that this broker hosts replicas of."""

    def __init__(self) -> None:
        self.by_topic: dict[str, Traffic] = {}
        self.gone = Traffic()

    def of(self, topic: str) -> Traffic:
        traffic = self.by_topic.get(topic)
        if traffic is None:
            traffic = self.by_topic[topic] = Traffic()
        return traffic

    def forget(self, topic: str) -> None:
        """This broker hosts the topic no more."""
        traffic = self.by_topic.pop(topic, None)
        if traffic is not None:
            self.gone.add(traffic)
