"""The groups that are put through churn: each client alone, all that speak the classic protocol together, the newer
protocol, static members of both, and groups that go from one to the other and back.

Only clients that end when another has their instance id are static members here: aiokafka sends heartbeats without it
and comes back for ever, kafka-python goes on until it commits.
"""

from tests.churn.clients import AIOKAFKA, CONFLUENT, JAVA, KAFKA_PYTHON, KAFKAJS, OURS
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


MIXED = {
    "range": (CONFLUENT, AIOKAFKA, KAFKA_PYTHON),
    "roundrobin": (CONFLUENT, AIOKAFKA, KAFKA_PYTHON),
    "sticky": (AIOKAFKA, KAFKA_PYTHON),
    "cooperative-sticky": (CONFLUENT, KAFKA_PYTHON),
}
"""The other clients in Python that have each assignor."""


def with_ours(assignor: str, changes: int) -> Script:
    """Members of ours among those of other clients, with an assignor of the classic protocol. Every other one is ours,
    so that leaders of either kind assign partitions to members of the other."""
    others = [Kind(client, strategy=assignor) for client in MIXED[assignor]]
    ours = [Kind(OURS, strategy=assignor)] * len(others)
    return Script(f"ours-{assignor}", [[*others, *ours]], changes, members_max=4, partitions=6)


def newer_with_ours(changes: int) -> Script:
    return Script("ours-newer", [[Kind(CONFLUENT, "consumer"), Kind(OURS, "consumer")]], changes, 4, partitions=6)


def migrating_with_ours(changes: int) -> Script:
    """Groups of ours and of librdkafka that go over to the newer protocol and back."""
    classic, newer = [Kind(OURS), Kind(CONFLUENT)], [Kind(OURS, "consumer"), Kind(CONFLUENT, "consumer")]
    return Script("ours-migrating", [classic, newer, classic], changes, members_max=4, partitions=6)


def static_with_ours(protocol: str, changes: int) -> Script:
    """Static members of ours, and guests that are not."""
    static, guests = [Kind(OURS, protocol)], [Kind(CONFLUENT, protocol), Kind(OURS, protocol)]
    return Script(f"ours-static-{protocol}", [static, guests], changes, members_max=4, partitions=6, instances=3)
