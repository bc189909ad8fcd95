"""Settings of the topics of groups and transactions that are about their replicas."""

from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

FACTOR_SETTINGS = {
    OFFSETS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
}
MIN_ISR_SETTING = "transaction.state.log.min.isr"
REPLICATION_FACTOR = 3
"""Kafka's default for these topics."""


def internal_topics_of(brokers: int) -> dict[str, str]:
    """The settings for a cluster of `brokers` brokers that differ from Kafka's defaults. With those, the topics
    could never be created on fewer than three: each broker gets a replica there, and one of them may be down."""
    if brokers >= REPLICATION_FACTOR:
        return {}
    return {**dict.fromkeys(FACTOR_SETTINGS.values(), str(brokers)), MIN_ISR_SETTING: str(max(brokers - 1, 1))}
