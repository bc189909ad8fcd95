"""What may differ between two right brokers, each taken out by a named rule: ids, times, ports, hosts, texts, orders.

A rule sees one field of a reply at a time: where it is, its value, and the broker's variables. It returns the value to
compare. A value that the script saved is replaced by its variable's name, so that the same id in two places of a reply
must still be the same. A rule that changed nothing in a whole run fails it: rules are as few as they can be.

`apis_of_both` is applied when two replies are compared, not before: a recording keeps all that Kafka advertises.
"""

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.protocol.apis import APIS
from tests.differential.batches import NOW
from tests.differential.playing import Outcome
from tests.differential.script import Tree, Variables

NO_ID = uuid.UUID(int=0)
RUN_MS = (NOW - 600_000, NOW + 3_600_000)
MEMBER_ID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|-[0-9A-Za-z_-]{22}$")
MADE_UP = range(987_000, 988_000)
"""Producer ids that the script makes up, and no broker gives."""
TIMES = (
    "timestamp",
    "log_append_time_ms",
    "base_timestamp",
    "max_timestamp",
    "transaction_start_time_ms",
    "last_timestamp",
)

UNORDERED = {
    ("Metadata", "topics"): ("name", "topic_id"),
    ("Metadata", "partitions"): ("partition_index",),
    ("ApiVersions", "api_keys"): ("api_key",),
    ("ApiVersions", "supported_features"): ("name",),
    ("ApiVersions", "finalized_features"): ("name",),
    ("ListOffsets", "topics"): ("name",),
    ("ListOffsets", "partitions"): ("partition_index",),
    ("Produce", "responses"): ("name", "topic_id"),
    ("Produce", "partition_responses"): ("index",),
    ("CreateTopics", "topics"): ("name",),
    ("CreateTopics", "configs"): ("name",),
    ("DeleteTopics", "responses"): ("name",),
    ("DescribeConfigs", "configs"): ("name",),
    ("ListGroups", "groups"): ("group_id",),
    ("DescribeGroups", "groups"): ("group_id",),
    ("DescribeGroups", "members"): ("client_id", "member_id"),
    ("JoinGroup", "members"): ("member_id",),
    ("IncrementalAlterConfigs", "responses"): ("resource_type", "resource_name"),
    ("AlterConfigs", "responses"): ("resource_type", "resource_name"),
    ("ListConfigResources", "config_resources"): ("resource_type", "resource_name"),
    ("ElectLeaders", "replica_election_results"): ("topic",),
    ("AlterReplicaLogDirs", "results"): ("topic_name",),
    ("AlterReplicaLogDirs", "partitions"): ("partition_index",),
    ("AlterClientQuotas", "entity"): ("entity_type",),
    ("AlterUserScramCredentials", "results"): ("user",),
    ("DeleteRecords", "topics"): ("name",),
    ("DeleteRecords", "partitions"): ("partition_index",),
    ("DescribeConfigs", "results"): ("resource_type", "resource_name"),
    ("CreatePartitions", "results"): ("name",),
    ("DeleteGroups", "results"): ("group_id",),
    ("ConsumerGroupDescribe", "members"): ("member_id",),
    ("DescribeLogDirs", "topics"): ("name",),
    ("DescribeLogDirs", "partitions"): ("partition_index",),
    ("AddPartitionsToTxn", "results_by_topic_v3_and_below"): ("name",),
    ("AddPartitionsToTxn", "topic_results"): ("name",),
    ("AddPartitionsToTxn", "results_by_partition"): ("partition_index",),
    ("AddPartitionsToTxn", "results_by_transaction"): ("transactional_id",),
    ("WriteTxnMarkers", "markers"): ("producer_id",),
    ("WriteTxnMarkers", "topics"): ("name",),
    ("WriteTxnMarkers", "partitions"): ("partition_index",),
    ("DescribeTransactions", "topics"): ("topic",),
    ("DescribeTransactions", "partitions"): (),
    ("DescribeProducers", "active_producers"): ("producer_id", "producer_epoch"),
    ("ListTransactions", "transaction_states"): ("transactional_id",),
    ("ListTransactions", "unknown_state_filters"): (),
}
"""Arrays that Kafka fills from hash maps, and by what they are compared: nothing stands for the elements themselves."""


@dataclass(frozen=True)
class At:
    """One place in a reply."""

    api: str
    field: str
    variables: Variables


Rule = Callable[[At, Any], Any]


def ports(at: At, value: Any) -> Any:
    return "<port>" if value > 0 else value


def hosts(at: At, value: Any) -> Any:
    return "<host>" if value else value


def clusters(at: At, value: Any) -> Any:
    return "<cluster>" if value else value


def topic_ids(at: At, value: Any) -> Any:
    return _named(at, value, "<an id>") if isinstance(value, uuid.UUID) and value != NO_ID else value


def member_ids(at: At, value: Any) -> Any:
    if not value:
        return value
    return _named(at, value, MEMBER_ID.sub("-<an id>", value))


def producer_ids(at: At, value: Any) -> Any:
    if value < 0 or value in MADE_UP:
        return value
    return _named(at, value, "<a producer id>", without="-epoch")


def volumes(at: At, value: Any) -> Any:
    """Where a broker keeps its data, and how large that disk is."""
    if at.api != "DescribeLogDirs":
        return value
    return "<disk>" if value not in ("", -1, 0) else value


def sessions(at: At, value: Any) -> Any:
    return "<a session>" if value else value


def feature_epochs(at: At, value: Any) -> Any:
    return "<epoch>" if value >= 0 else value


def texts(at: At, value: Any) -> Any:
    return value if value is None else "<text>"


def times(at: At, value: Any) -> Any:
    """Times that a broker took from its clock: those of the script are a day older."""
    return "<now>" if RUN_MS[0] < value < RUN_MS[1] else value


def orders(at: At, value: Any) -> Any:
    keys = UNORDERED.get((at.api, at.field))
    if keys is None or not isinstance(value, list):
        return value
    return sorted(value, key=lambda item: [str(item.get(key)) for key in keys]) if keys else sorted(value)


def apis_of_both(at: At, value: Any) -> Any:
    """Kafka has more APIs than we have: the ranges of those that our table names are compared."""
    return [one for one in value if one["api_key"] in APIS]


def _named(at: At, value: Any, otherwise: str, without: str = "<>") -> str:
    """`without`: names that end so are of something else."""
    found = (name for name, known in at.variables.items() if known == value and not name.endswith(without))
    return next((f"<{name}>" for name in found), otherwise)


RULES: dict[Rule, tuple[str, ...]] = {
    ports: ("port",),
    hosts: ("host",),
    clusters: ("cluster_id",),
    topic_ids: (),
    member_ids: ("member_id", "leader"),
    producer_ids: ("producer_id",),
    volumes: ("log_dir", "total_bytes", "usable_bytes"),
    sessions: ("session_id",),
    feature_epochs: ("finalized_features_epoch",),
    texts: ("error_message", "batch_index_error_message", "documentation"),
    times: TIMES,
    orders: tuple({field for _, field in UNORDERED}),
}
"""In the order in which they are applied, each with the fields that it looks at; () for every field."""
WHEN_COMPARED: dict[Rule, tuple[str, ...]] = {apis_of_both: ("api_keys",)}


def normalised(api: str, outcome: Outcome, used: set[str]) -> Outcome:
    """The outcome with everything that may differ taken out; `used` collects the names of rules that did."""
    return Outcome(outcome.kind, apply(RULES, api, outcome.tree, outcome.variables, used))


def apply(rules: Mapping[Rule, tuple[str, ...]], api: str, tree: Tree, variables: Variables, used: set[str]) -> Tree:
    """The reply after these rules."""
    by_field: dict[str, list[Rule]] = {}

    def rules_of(field: str) -> list[Rule]:
        found = by_field[field] = [rule for rule, fields in rules.items() if not fields or field in fields]
        return found

    def walk(field: str, value: Any) -> Any:
        if isinstance(value, dict):
            value = {name: walk(name, item) for name, item in value.items()}
        elif isinstance(value, list):
            value = [walk("", item) if isinstance(item, dict | list) else walk(field, item) for item in value]
        for rule in by_field.get(field) or rules_of(field):
            after = rule(At(api, field, variables), value)
            if after is not value and after != value:
                used.add(rule.__name__)
            value = after
        return value

    return walk("", tree)
