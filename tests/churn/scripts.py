"""The groups that are put through churn: each client alone, all that speak the classic protocol together, the newer
protocol, static members of both, and groups that go from one to the other and back.

Only clients that end when another has their instance id are static members here: aiokafka sends heartbeats without it
and comes back for ever, kafka-python goes on until it commits.
"""

from tests.churn.clients import AIOKAFKA, CONFLUENT, JAVA, KAFKA_PYTHON, KAFKAJS
from tests.churn.plan import Kind, Script

CLASSIC = tuple(Kind(client) for client in (CONFLUENT, AIOKAFKA, KAFKA_PYTHON, KAFKAJS, JAVA))
MIGRATING = tuple(kind for kind in CLASSIC if kind.client != AIOKAFKA)
"""aiokafka gives up when its JoinGroup is answered with REBALANCE_IN_PROGRESS, as Kafka and we answer those that are
parked when their group goes over to the consumer protocol."""
STATIC = (Kind(CONFLUENT), Kind(JAVA))
GUESTS = tuple(kind for kind in CLASSIC if kind not in STATIC)
NEWER = (Kind(CONFLUENT, "consumer"), Kind(JAVA, "consumer"))
ALONE = (
    Kind(CONFLUENT, strategy="cooperative-sticky"),
    Kind(AIOKAFKA, strategy="sticky"),
    Kind(KAFKA_PYTHON, strategy="cooperative-sticky"),
    Kind(KAFKAJS, strategy="its own"),
    Kind(JAVA, strategy="cooperative-sticky"),
)


def alone(kind: Kind, changes: int) -> Script:
    return Script(f"{kind.client}-alone", [[kind]], changes, members_max=3, partitions=4)


def rows(changes: int = 100) -> list[list[Script]]:
    """So many changes in all, side by side so that no row is much longer than another."""
    fifth = changes // 5
    few = changes // 12
    by_itself = [alone(kind, few) for kind in ALONE]
    return [
        [Script("classic", [CLASSIC], fifth + fifth // 4, members_max=5, partitions=8)],
        [Script("newer", [NEWER], fifth, members_max=4, partitions=6)],
        [Script("static", [STATIC, GUESTS], few + few // 2, members_max=4, partitions=6, instances=3)],
        [Script("static-newer", [NEWER, NEWER], few + few // 2, members_max=4, partitions=6, instances=3)],
        [Script("migrating", [MIGRATING, NEWER, MIGRATING], fifth, members_max=4, partitions=6)],
        by_itself[:3],
        by_itself[3:],
    ]
