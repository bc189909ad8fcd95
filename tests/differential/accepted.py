"""The differences between Kafka's answers and ours that we stand by: at most 25 for each version of Kafka, each used,
each with its reason."""

from tests.differential.comparing import Accepted

ACCEPTED_MAX = 25
OF_BOTH: tuple[Accepted, ...] = (
    Accepted(
        "ApiVersions",
        (3, 5),
        "supported_features*",
        "A feature is named on the day the broker has it; Kafka's are versions of its own metadata and protocols.",
    ),
    Accepted(
        "ApiVersions",
        (3, 5),
        "finalized_features*",
        "Clients choose by finalized features (Java's transactions do), so each waits until the broker does it.",
    ),
    Accepted(
        "Metadata",
        (12, 12),
        "topics[0].error_code",
        "Kafka trips over a topic without name and id (UNKNOWN_SERVER_ERROR); we say INVALID_REQUEST.",
        "metadata by neither name nor id",
    ),
    Accepted(
        "DescribeConfigs",
        (4, 4),
        "results[0].configs[*].synonyms[1]",
        "Our node.id has a default, Kafka's must be set.",
        "settings of the broker",
    ),
    Accepted(
        "IncrementalAlterConfigs",
        (1, 1),
        "responses[0].error_*",
        "Kafka trips over an operation it does not know (UNKNOWN_SERVER_ERROR); we say INVALID_REQUEST.",
        "*an operation nobody knows",
    ),
    Accepted(
        "Produce",
        (8, 8),
        "outcome",
        "Kafka never answers a null record set; we say INVALID_RECORD.",
        "produce what is no batch: null",
    ),
    Accepted(
        "Produce",
        (8, 8),
        "responses[0].partition_responses[0].error_code",
        "Kafka trips over bytes that cannot be inflated or counted (UNKNOWN_SERVER_ERROR); we say INVALID_RECORD.",
        "produce what is no batch: * that is none",
    ),
    Accepted(
        "Fetch",
        (12, 12),
        "*",
        "Kafka trips over an isolation level it does not know; we read it as read_uncommitted.",
        "fetch at an isolation nobody knows",
    ),
    Accepted(
        "Fetch",
        (12, 12),
        "*",
        "Kafka trips over a negative max_bytes; we send the first batch, as for zero.",
        "fetch less than nothing",
    ),
    Accepted(
        "Fetch",
        (13, 13),
        "responses[0].partitions[0].*",
        "last_fetched_epoch is a follower's: it is looked at when there are followers.",
        "fetch with the epoch of a future",
    ),
    Accepted(
        "Fetch",
        (12, 12),
        "responses[0].partitions[0].records[*].batch_length",
        "Two implementations of gzip or zstd make different bytes of the same records.",
        "fetch what the broker compressed*",
    ),
    Accepted(
        "Fetch",
        (12, 12),
        "responses[0].partitions[0].records[*].base_timestamp",
        "Kafka's recompression makes the first record's time the batch's; the times of the records are the same.",
        "fetch what the broker compressed: *",
    ),
    Accepted(
        "Produce",
        (8, 8),
        "responses[0].partition_responses[0].*",
        "Offsets out of order, lengths of minus two, times beyond the last: poison for consumers (INVALID_RECORD).",
        "produce what Kafka takes: *",
    ),
    Accepted(
        "DescribeTopicPartitions",
        (0, 0),
        "topics[0].*",
        "Kafka knows no answer to a topic without a name (UNKNOWN_SERVER_ERROR); we say INVALID_TOPIC_EXCEPTION.",
        "describe a topic without a name",
    ),
    Accepted(
        "ListOffsets",
        (7, 7),
        "topics[0].partitions[0].*",
        "Until retention has come, Kafka finds nothing for the time of a deleted record; we find the next record.",
        "by * time in rolled after *",
    ),
    Accepted(
        "Metadata",
        (1, 5),
        "outcome",
        "Java puts a replacement character where bytes are not UTF-8; we close the connection.",
        "a frame with * that is not UTF-8",
    ),
    Accepted(
        "????Group",
        (3, 3),
        "outcome",
        "Kafka never answers a JoinGroup or SyncGroup whose member sends another; we do: its connection waits for it.",
        "b is told that it * twice",
    ),
    Accepted(
        "DescribeProducers",
        (0, 0),
        "topics[0].partitions[1]",
        "Kafka says twice what is asked twice; we say it once: a partition may have a hundred thousand producers.",
        "producers of a partition twice",
    ),
    Accepted(
        "DescribeTransactions",
        (0, 0),
        "transaction_states[1]",
        "Kafka says twice what is asked twice; we say it once: a transaction may have a hundred thousand partitions.",
        "described twice",
    ),
)

NEW_SETTINGS = (
    "errors.deadletterqueue.group.enable",
    "max.decompressed.message.bytes",
    "remote.copy.lag.bytes",
    "remote.copy.lag.ms",
)
OF_4_3: tuple[Accepted, ...] = (
    Accepted(
        "*",
        (0, 7),
        "*configs[*]",
        "Settings of topics that came with Kafka 4.4.",
        about=NEW_SETTINGS,
    ),
    Accepted(
        "ConsumerGroupDescribe",
        (1, 1),
        "groups[0].assignment_epoch",
        "Kafka 4.4 also makes an assignment for nobody, when the last member leaves, and so do we.",
        "describe a group that all have left",
    ),
    Accepted(
        "ApiVersions",
        (-1, 99),
        "api_keys[*].max_version",
        "ApiVersions 5, TxnOffsetCommit 6 and DeleteGroups 3 came with Kafka 4.4, whose recording has the numbers.",
    ),
    Accepted(
        "CreatePartitions",
        (3, 3),
        "results[0].error_*",
        "Kafka's controller gives up on far too many partitions (UNKNOWN_SERVER_ERROR); we say POLICY_VIOLATION.",
        "growing by far too many",
    ),
)
OF_4_4: tuple[Accepted, ...] = (
    Accepted(
        "ConsumerGroup*",
        (1, 1),
        "*epoch",
        "Kafka 4.4 begins an epoch when a member asks for another assignor; we do with the next change, as 4.3 does.",
        "*newer-*: *",
    ),
)
ACCEPTED: dict[str, tuple[Accepted, ...]] = {"4.3.1": (*OF_BOTH, *OF_4_3), "4.4.0": (*OF_BOTH, *OF_4_4)}
"""By the version of Kafka."""
