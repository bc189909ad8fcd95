"""Bugs of replication and of replicated coordinators that worlds of three brokers must find, each within the seeds that
are beside it. Those that only the tests of single rules find are in `tests/replication` and `tests/cluster`."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.cluster.controlling.acting import Acting
from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from tests.replacing import Instead, nothing, returns

GROUPS, TRANSACTIONS = "replicated-groups", "replicated-transactions"
INTERNAL = "moldau.replication.internal_topic"


def cuts_at_the_watermark(
    take_roles: Callable[..., None], replica: Replica, roles: PartitionRoles, now_ms: int
) -> None:
    take_roles(replica, roles, now_ms)
    if not replica.leadership.leads and replica.high_watermark < replica.log.log_end_offset:
        replica.log.truncate_to(replica.high_watermark, 0, now_ms)


def all_of_them(
    _: Callable[..., dict[int, BrokerImage]], __: Acting, brokers: Mapping[int, BrokerImage]
) -> dict[int, BrokerImage]:
    return dict(brokers)


class ClusterBug(NamedTuple):
    """`first`: the seed where the search begins; `seeds`: how many it takes at most."""

    bug: Instead
    kind: str
    first: int
    seeds: int
    power_loss: bool = False


BUGS: dict[str, ClusterBug] = {
    "acks=all is answered at the append": ClusterBug(
        Instead("moldau.replication.replica:Replica.acknowledged", returns(ErrorCode.NONE)), TRANSACTIONS, 20_020, 300
    ),
    "a leader compares no epochs": ClusterBug(
        Instead("moldau.replication.for_followers:divergence", returns(None)), TRANSACTIONS, 60_000, 300
    ),
    "a follower truncates to its high watermark": ClusterBug(
        Instead("moldau.replication.replica:Replica.take_roles", cuts_at_the_watermark), TRANSACTIONS, 60_030, 300
    ),
    "a group coordinator answers before its records are committed": ClusterBug(
        Instead(f"{INTERNAL}:committed", nothing), GROUPS, 60_005, 300
    ),
    "a new controller shows brokers before it has elected leaders without them": ClusterBug(
        Instead("moldau.cluster.controlling.acting:Acting._dealt_with", all_of_them), TRANSACTIONS, 9, 300
    ),
    "a broker leads by what it read at its start": ClusterBug(
        Instead("moldau.cluster.state.own_leaderships:led_topics", returns([])), TRANSACTIONS, 9500, 200, True
    ),
}
