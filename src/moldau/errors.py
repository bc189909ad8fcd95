"""The exceptions we raise, and Kafka's error codes: one table of name, code, whether a client may try
again, and a sentence.

Expected failures travel as `ErrorCode` values per topic or partition; the exceptions are for what leaves the ordinary
path. "They broke the protocol" (`ProtocolViolation`) and "we broke it" (an `assert`, or any other exception) are
never the same. Source: "Error Codes" of Kafka's protocol guide.
"""

import enum


class ErrorCode(enum.IntEnum):
    """Kafka's error codes. `retriable`: the same request may succeed later; `sentence`: what to tell people."""

    retriable: bool
    sentence: str

    def __new__(cls, code: int, retriable: bool, sentence: str) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.sentence = sentence
        return member

    UNKNOWN_SERVER_ERROR = -1, False, "the broker met something it did not expect"
    NONE = 0, False, "nothing went wrong"
    OFFSET_OUT_OF_RANGE = 1, False, "no record of the partition has that offset"
    CORRUPT_MESSAGE = 2, True, "the records are damaged, or no batch of records at all"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "there is no such topic or partition on this broker"
    INVALID_FETCH_SIZE = 4, False, "the number of bytes to fetch is not above 0"
    LEADER_NOT_AVAILABLE = 5, True, "nobody leads the partition at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, True, "this broker does not lead the partition, or has no replica of it"
    REQUEST_TIMED_OUT = 7, True, "the time for the request was over before it was done"
    BROKER_NOT_AVAILABLE = 8, False, "that broker is not up"
    REPLICA_NOT_AVAILABLE = 9, True, "the replica is not there yet"
    MESSAGE_TOO_LARGE = 10, False, "the batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, False, "another controller has taken over since"
    OFFSET_METADATA_TOO_LARGE = 12, False, "the note to a committed offset is too long"
    NETWORK_EXCEPTION = 13, True, "the connection broke before the answer came"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "the coordinator is still reading what it has to know"
    COORDINATOR_NOT_AVAILABLE = 15, True, "there is no coordinator at the moment"
    NOT_COORDINATOR = 16, True, "this broker does not coordinate that group or transaction"
    INVALID_TOPIC_EXCEPTION = 17, False, "a topic cannot have that name, or may not be used so"
    RECORD_LIST_TOO_LARGE = 18, False, "the batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, True, "fewer replicas are in sync than the topic asks for, and nothing was written"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "the records were written, but too few replicas stayed in sync"
    INVALID_REQUIRED_ACKS = 21, False, "acks must be 0, 1 or -1 (all)"
    ILLEGAL_GENERATION = 22, False, "the group has gone on to another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "the member has no protocol in common with the group"
    INVALID_GROUP_ID = 24, False, "a group cannot have that id"
    UNKNOWN_MEMBER_ID = 25, False, "the group does not know that member"
    INVALID_SESSION_TIMEOUT = 26, False, "the session time-out is outside of what this broker allows"
    REBALANCE_IN_PROGRESS = 27, False, "the group is rebalancing, and its members have to join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "the offsets to commit are too large to be stored"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "this is not allowed on the topic"
    GROUP_AUTHORIZATION_FAILED = 30, False, "this is not allowed on the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "this is not allowed on the cluster"
    INVALID_TIMESTAMP = 32, False, "a record's timestamp is too far from now"
    UNSUPPORTED_SASL_MECHANISM = 33, False, "that SASL mechanism is not switched on"
    ILLEGAL_SASL_STATE = 34, False, "the request is out of place in the authentication"
    UNSUPPORTED_VERSION = 35, False, "that version of the request is not served"
    TOPIC_ALREADY_EXISTS = 36, False, "there is a topic of that name already"
    INVALID_PARTITIONS = 37, False, "that is no possible number of partitions"
    INVALID_REPLICATION_FACTOR = 38, False, "that many replicas are not possible with the brokers there are"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "the partitions cannot be assigned to brokers like that"
    INVALID_CONFIG = 40, False, "a setting is unknown, or cannot have that value"
    NOT_CONTROLLER = 41, True, "this broker is not the controller"
    INVALID_REQUEST = 42, False, "the request contradicts itself, or asks for what cannot be"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "the records are of a format that cannot do this"
    POLICY_VIOLATION = 44, False, "a rule of this cluster forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "a batch of this producer is missing before this one"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "this batch was written before"
    INVALID_PRODUCER_EPOCH = 47, False, "a later instance of this producer has taken over"
    INVALID_TXN_STATE = 48, False, "the transaction is not in a state in which this can be done"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "the producer id does not belong to that transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "the transaction time-out is outside of what this broker allows"
    CONCURRENT_TRANSACTIONS = 51, True, "the transaction before this one is still being completed"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "another coordinator has taken over the transaction"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "this transactional id may not be used"
    SECURITY_DISABLED = 54, False, "security is not switched on"
    OPERATION_NOT_ATTEMPTED = 55, False, "this was not tried, because something before it failed"
    KAFKA_STORAGE_ERROR = 56, True, "the disk failed"
    LOG_DIR_NOT_FOUND = 57, False, "there is no such log folder on this broker"
    SASL_AUTHENTICATION_FAILED = 58, False, "the credentials are wrong"
    UNKNOWN_PRODUCER_ID = 59, False, "nothing is known of that producer any more"
    REASSIGNMENT_IN_PROGRESS = 60, False, "the partition is being moved to other brokers"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "delegation tokens are not switched on"
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "there is no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "the delegation token belongs to someone else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "delegation tokens cannot be asked for on this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "this is not allowed on the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, False, "the delegation token is no longer valid"
    INVALID_PRINCIPAL_TYPE = 67, False, "that kind of principal is not known"
    NON_EMPTY_GROUP = 68, False, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, False, "there is no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "there is no such fetch session"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "the fetch session is not at that epoch"
    LISTENER_NOT_FOUND = 72, True, "the leader has no listener of the name the client came by"
    TOPIC_DELETION_DISABLED = 73, False, "this broker does not delete topics"
    FENCED_LEADER_EPOCH = 74, True, "the client knows of an older leader than this broker does"
    UNKNOWN_LEADER_EPOCH = 75, True, "the client knows of a later leader than this broker does"
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "the records are compressed in a way that is not supported here"
    STALE_BROKER_EPOCH = 77, False, "the broker was registered anew since"
    OFFSET_NOT_AVAILABLE = 78, True, "the new leader does not know yet up to where records are committed"
    MEMBER_ID_REQUIRED = 79, False, "the member has to join again with the id it is given here"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "the preferred leader cannot lead at the moment"
    GROUP_MAX_SIZE_REACHED = 81, False, "the group has as many members as it may have"
    FENCED_INSTANCE_ID = 82, False, "another member has taken this instance id over"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "no replica that could lead is up"
    ELECTION_NOT_NEEDED = 84, True, "the partition is led by whom it should be led"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "the partition is not being moved"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "the group is subscribed to the topic, so its offsets stay"
    INVALID_RECORD = 87, False, "a record is not as it has to be"
    UNSTABLE_OFFSET_COMMIT = 88, True, "a transaction that commits this offset is still open"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "there were too many such requests lately"
    PRODUCER_FENCED = 90, False, "a later producer with the same transactional id has taken over"
    RESOURCE_NOT_FOUND = 91, False, "what the request names is not there"
    DUPLICATE_RESOURCE = 92, False, "the request names something more than once"
    UNACCEPTABLE_CREDENTIAL = 93, False, "credentials cannot be like that"
    INCONSISTENT_VOTER_SET = 94, False, "the voters are not those that the request takes for granted"
    INVALID_UPDATE_VERSION = 95, False, "the feature cannot get that version"
    FEATURE_UPDATE_FAILED = 96, False, "the features could not be changed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "the principal that was forwarded cannot be read"
    SNAPSHOT_NOT_FOUND = 98, False, "there is no such snapshot"
    POSITION_OUT_OF_RANGE = 99, False, "the position is not within the snapshot"
    UNKNOWN_TOPIC_ID = 100, True, "there is no topic with that id on this broker"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "another broker with this number is up"
    BROKER_ID_NOT_REGISTERED = 102, False, "no broker with that number was ever up"
    INCONSISTENT_TOPIC_ID = 103, True, "the topic with that name has another id"
    INCONSISTENT_CLUSTER_ID = 104, False, "the request was meant for another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "nothing is known of that transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "the fetch session names topics by something else than the request"
    INELIGIBLE_REPLICA = 107, False, "the replica may not be counted as in sync"
    NEW_LEADER_ELECTED = 108, False, "the change was made, and it brought another leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "the records at that offset are no longer on the local disk"
    FENCED_MEMBER_EPOCH = 110, False, "the member is not at the epoch at which the group has it"
    UNRELEASED_INSTANCE_ID = 111, False, "another member still holds this instance id"
    UNSUPPORTED_ASSIGNOR = 112, False, "the group has no such assignor"
    STALE_MEMBER_EPOCH = 113, False, "the member has to learn its new epoch first"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "the request was sent to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "there is no such kind of endpoint"
    UNKNOWN_CONTROLLER_ID = 116, False, "there is no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "the telemetry subscription is not that one any more"
    TELEMETRY_TOO_LARGE = 118, False, "more telemetry was pushed than is taken"
    INVALID_REGISTRATION = 119, False, "a broker cannot be registered like that"
    TRANSACTION_ABORTABLE = 120, False, "the transaction has to be aborted"
    INVALID_RECORD_STATE = 121, False, "the record cannot be acknowledged in the state it is in"
    SHARE_SESSION_NOT_FOUND = 122, True, "there is no such share session"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "the share session is not at that epoch"
    FENCED_STATE_EPOCH = 124, False, "the share state has gone on to a later epoch"
    INVALID_VOTER_KEY = 125, False, "the voter is not known by that key"
    DUPLICATE_VOTER = 126, False, "the voter is there already"
    VOTER_NOT_FOUND = 127, False, "there is no such voter"
    INVALID_REGULAR_EXPRESSION = 128, False, "the regular expression cannot be read"
    REBOOTSTRAP_REQUIRED = 129, False, "the client has to begin again with its first brokers"
    STREAMS_INVALID_TOPOLOGY = 130, False, "the topology is not possible"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "the topology is not at that epoch"
    STREAMS_TOPOLOGY_FENCED = 132, False, "the group has gone on to a later topology"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "there are as many share sessions as there may be"


class MoldauError(Exception):
    """Every exception of ours; its text is one sentence that says what to do."""


class ProtocolViolation(MoldauError):
    """The peer sent bytes that are no message of the protocol: its connection is closed."""


class ConfigError(MoldauError):
    """A setting is unknown or its value is not allowed."""


class StorageError(MoldauError):
    """Reading or writing a log folder failed, or another process holds it."""


class StartInterrupted(MoldauError):
    """The broker was asked to stop before it had started."""


class KafkaError(MoldauError):
    """A request was answered, or has to be answered, with an error code of Kafka's."""

    def __init__(self, code: ErrorCode, message: str | None = None):
        super().__init__(message or f"{code.sentence} ({code.name})")
        self.code = code
        self.message = message

    @property
    def retriable(self) -> bool:
        return self.code.retriable
