"""Kafka's error codes: one table of name, code, whether a client may retry, and a sentence.

Expected failures are `ErrorCode` values for each topic or partition; `moldau.errors` has the exceptions. Source: "Error
Codes" of Kafka's protocol guide.
"""

import enum


class ErrorCode(enum.IntEnum):
    """Kafka's error codes. `retriable`: the same request may succeed later. `sentence`: the explanation for people."""

    retriable: bool
    sentence: str

    def __new__(cls, code: int, retriable: bool, sentence: str) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.sentence = sentence
        return member

    UNKNOWN_SERVER_ERROR = -1, False, "the broker met an unexpected error"
    NONE = 0, False, "nothing went wrong"
    OFFSET_OUT_OF_RANGE = 1, False, "no record of the partition has that offset"
    CORRUPT_MESSAGE = 2, True, "the records are damaged or are not a record batch"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "this broker does not have that topic or partition"
    INVALID_FETCH_SIZE = 4, False, "the number of bytes to fetch must be above 0"
    LEADER_NOT_AVAILABLE = 5, True, "the partition has no leader at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, True, "this broker is not the partition's leader, or has no replica of it"
    REQUEST_TIMED_OUT = 7, True, "the request was not completed within its timeout"
    BROKER_NOT_AVAILABLE = 8, False, "that broker is not up"
    REPLICA_NOT_AVAILABLE = 9, True, "the replica is not available yet"
    MESSAGE_TOO_LARGE = 10, False, "the batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, False, "another controller has taken over"
    OFFSET_METADATA_TOO_LARGE = 12, False, "the metadata of the committed offset is too long"
    NETWORK_EXCEPTION = 13, True, "the connection broke before the answer came"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "the coordinator is still loading its state"
    COORDINATOR_NOT_AVAILABLE = 15, True, "no coordinator is available at the moment"
    NOT_COORDINATOR = 16, True, "this broker does not coordinate that group or transaction"
    INVALID_TOPIC_EXCEPTION = 17, False, "the topic name is invalid, or the topic does not allow this operation"
    RECORD_LIST_TOO_LARGE = 18, False, "the batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, True, "fewer replicas are in sync than min.insync.replicas, and nothing was written"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "the records were written, but too few replicas stayed in sync"
    INVALID_REQUIRED_ACKS = 21, False, "acks must be 0, 1 or -1 (all)"
    ILLEGAL_GENERATION = 22, False, "the group is at another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "the member supports none of the group's protocols"
    INVALID_GROUP_ID = 24, False, "the group id is invalid"
    UNKNOWN_MEMBER_ID = 25, False, "the group has no member with that id"
    INVALID_SESSION_TIMEOUT = 26, False, "the session timeout is outside the range that this broker allows"
    REBALANCE_IN_PROGRESS = 27, False, "the group is rebalancing, and its members must rejoin"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "the offsets to commit are too large to be stored"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "this is not allowed on the topic"
    GROUP_AUTHORIZATION_FAILED = 30, False, "this is not allowed on the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "this is not allowed on the cluster"
    INVALID_TIMESTAMP = 32, False, "a record's timestamp is too far from the broker's time"
    UNSUPPORTED_SASL_MECHANISM = 33, False, "that SASL mechanism is not enabled"
    ILLEGAL_SASL_STATE = 34, False, "the request is not allowed at this stage of authentication"
    UNSUPPORTED_VERSION = 35, False, "this broker does not support that version of the request"
    TOPIC_ALREADY_EXISTS = 36, False, "a topic with that name already exists"
    INVALID_PARTITIONS = 37, False, "the number of partitions is invalid"
    INVALID_REPLICATION_FACTOR = 38, False, "the cluster has too few brokers for that replication factor"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "the assignment of replicas to brokers is invalid"
    INVALID_CONFIG = 40, False, "a setting is unknown, or its value is invalid"
    NOT_CONTROLLER = 41, True, "this broker is not the controller"
    INVALID_REQUEST = 42, False, "the request contradicts itself or asks for something impossible"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "the message format of the records does not support this"
    POLICY_VIOLATION = 44, False, "a policy of this cluster forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "an earlier batch of this producer is missing"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "this batch has already been written"
    INVALID_PRODUCER_EPOCH = 47, False, "a newer instance of this producer has taken over"
    INVALID_TXN_STATE = 48, False, "the transaction's state does not allow this"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "the producer id does not belong to that transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "the transaction timeout is longer than this broker allows"
    CONCURRENT_TRANSACTIONS = 51, True, "the previous transaction is still being completed"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "another coordinator has taken over the transaction"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "this transactional id may not be used"
    SECURITY_DISABLED = 54, False, "security is not enabled"
    OPERATION_NOT_ATTEMPTED = 55, False, "this was not attempted, because an earlier step failed"
    KAFKA_STORAGE_ERROR = 56, True, "the disk failed"
    LOG_DIR_NOT_FOUND = 57, False, "this broker has no such log folder"
    SASL_AUTHENTICATION_FAILED = 58, False, "the credentials are wrong"
    UNKNOWN_PRODUCER_ID = 59, False, "the broker no longer knows that producer id"
    REASSIGNMENT_IN_PROGRESS = 60, False, "the partition is being moved to other brokers"
    DELEGATION_TOKEN_AUTH_DISABLED = (
        61,
        False,
        "delegation tokens need delegation.token.secret.key at the brokers",
    )
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "the delegation token does not exist"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "the delegation token belongs to someone else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        False,
        "delegation tokens need a login by SASL or a certificate",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "this is not allowed on the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, False, "the delegation token is no longer valid"
    INVALID_PRINCIPAL_TYPE = 67, False, "that type of principal is unknown"
    NON_EMPTY_GROUP = 68, False, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, False, "the group does not exist"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "the fetch session does not exist"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "the fetch session is at another epoch"
    LISTENER_NOT_FOUND = 72, True, "the leader has no listener with the name of the client's"
    TOPIC_DELETION_DISABLED = 73, False, "this broker does not delete topics"
    FENCED_LEADER_EPOCH = 74, True, "the client's leader epoch is older than this broker's"
    UNKNOWN_LEADER_EPOCH = 75, True, "the client's leader epoch is newer than this broker's"
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "the compression of the records is not supported here"
    STALE_BROKER_EPOCH = 77, False, "the broker has registered again since"
    OFFSET_NOT_AVAILABLE = 78, True, "the new leader does not know the high watermark yet"
    MEMBER_ID_REQUIRED = 79, False, "the member must join again with the id in this answer"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "the preferred leader is not available at the moment"
    GROUP_MAX_SIZE_REACHED = 81, False, "the group has its maximum number of members"
    FENCED_INSTANCE_ID = 82, False, "another member has taken over this group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "no replica that could become the leader is available"
    ELECTION_NOT_NEEDED = 84, True, "the partition already has the leader that the election would choose"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "the partition is not being moved"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "the group is subscribed to the topic, so its offsets are not deleted"
    INVALID_RECORD = 87, False, "a record failed validation"
    UNSTABLE_OFFSET_COMMIT = 88, True, "a transaction that commits this offset is still open"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "the quota for such requests is exceeded"
    PRODUCER_FENCED = 90, False, "a newer producer with the same transactional id has taken over"
    RESOURCE_NOT_FOUND = 91, False, "the named resource does not exist"
    DUPLICATE_RESOURCE = 92, False, "the request names a resource more than once"
    UNACCEPTABLE_CREDENTIAL = 93, False, "the credential does not meet the requirements"
    INCONSISTENT_VOTER_SET = 94, False, "the voters are not those that the request names"
    INVALID_UPDATE_VERSION = 95, False, "the feature cannot have that version"
    FEATURE_UPDATE_FAILED = 96, False, "the features could not be changed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "the forwarded principal cannot be read"
    SNAPSHOT_NOT_FOUND = 98, False, "the snapshot does not exist"
    POSITION_OUT_OF_RANGE = 99, False, "the position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, True, "this broker has no topic with that id"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "another live broker has this id"
    BROKER_ID_NOT_REGISTERED = 102, False, "no broker with that id has registered"
    INCONSISTENT_TOPIC_ID = 103, True, "the topic with that name has another id"
    INCONSISTENT_CLUSTER_ID = 104, False, "the request was meant for another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "the transactional id is unknown"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "the fetch session and the request identify topics differently"
    INELIGIBLE_REPLICA = 107, False, "the replica cannot be added to the in-sync replicas"
    NEW_LEADER_ELECTED = 108, False, "the change was made, and the partition has another leader now"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "the records at that offset are no longer on the local disk"
    FENCED_MEMBER_EPOCH = 110, False, "the member's epoch is not the one that the group has for it"
    UNRELEASED_INSTANCE_ID = 111, False, "another member still holds this instance id"
    UNSUPPORTED_ASSIGNOR = 112, False, "the group has no such assignor"
    STALE_MEMBER_EPOCH = 113, False, "the member must learn its new epoch first"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "the request was sent to the wrong type of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "that type of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, False, "the controller does not exist"
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "the telemetry subscription has changed"
    TELEMETRY_TOO_LARGE = 118, False, "the pushed telemetry is larger than this broker accepts"
    INVALID_REGISTRATION = 119, False, "the broker's registration is invalid"
    TRANSACTION_ABORTABLE = 120, False, "the transaction must be aborted"
    INVALID_RECORD_STATE = 121, False, "the record's state does not allow this acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, True, "the share session does not exist"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "the share session is at another epoch"
    FENCED_STATE_EPOCH = 124, False, "the share group's state is at a later epoch"
    INVALID_VOTER_KEY = 125, False, "the voter has another key"
    DUPLICATE_VOTER = 126, False, "the voter already exists"
    VOTER_NOT_FOUND = 127, False, "the voter does not exist"
    INVALID_REGULAR_EXPRESSION = 128, False, "the regular expression is invalid"
    REBOOTSTRAP_REQUIRED = 129, False, "the client must start again from its bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, False, "the topology is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "the topology is at another epoch"
    STREAMS_TOPOLOGY_FENCED = 132, False, "the group has a newer topology"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "the broker has its maximum number of share sessions"
    GROUP_DELETION_FAILED = 134, False, "the group could not be deleted"
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, False, "the description of the topology could not be stored"
    CONTROLLER_ID_NOT_REGISTERED = 136, False, "no controller with that id has registered"


_BY_NUMBER: dict[int, ErrorCode] = {int(error): error for error in ErrorCode}


def error_of(code: int) -> ErrorCode:
    """The error code with this number; UNKNOWN_SERVER_ERROR for a number that is not in the table."""
    return _BY_NUMBER.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
