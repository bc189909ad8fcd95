"""One exception for each of Kafka's error codes that a client's user may meet.

`KafkaError(code, message)` makes an instance of the class declared for the code: the words of the code's name.
"""

from moldau.error_codes import ErrorCode
from moldau.errors.bases import KafkaError

# -- the connection, and the cluster's state


class NetworkException(KafkaError, ConnectionError, code=ErrorCode.NETWORK_EXCEPTION):
    """The broker cannot be reached, or the connection broke before the answer came. Also a `ConnectionError`."""


class RequestTimedOut(KafkaError, TimeoutError, code=ErrorCode.REQUEST_TIMED_OUT):
    """The call was not completed within its time-out. Also a `TimeoutError`."""


class UnknownServerError(KafkaError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The broker met an unexpected error, or answered with a code that this client does not know."""


class UnsupportedVersion(KafkaError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The broker does not support the request, or not in a version that this client can send."""


class InvalidRequest(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """The request contradicts itself or asks for something impossible."""


class BrokerNotAvailable(KafkaError, code=ErrorCode.BROKER_NOT_AVAILABLE):
    """The broker with that id is not up."""


class LeaderNotAvailable(KafkaError, code=ErrorCode.LEADER_NOT_AVAILABLE):
    """The partition has no leader at the moment."""


class NotLeaderOrFollower(KafkaError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """The asked broker is not the partition's leader, or has no replica of it."""


class ReplicaNotAvailable(KafkaError, code=ErrorCode.REPLICA_NOT_AVAILABLE):
    """The replica is not available yet."""


class NotController(KafkaError, code=ErrorCode.NOT_CONTROLLER):
    """The asked broker is not the controller."""


class KafkaStorageError(KafkaError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """A disk of the broker failed."""


class LogDirNotFound(KafkaError, code=ErrorCode.LOG_DIR_NOT_FOUND):
    """The broker has no such log folder."""


class FencedLeaderEpoch(KafkaError, code=ErrorCode.FENCED_LEADER_EPOCH):
    """The client's leader epoch is older than the broker's."""


class UnknownLeaderEpoch(KafkaError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    """The client's leader epoch is newer than the broker's."""


class ThrottlingQuotaExceeded(KafkaError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED):
    """The quota for such requests is exceeded."""


class RebootstrapRequired(KafkaError, code=ErrorCode.REBOOTSTRAP_REQUIRED):
    """The client must start again from its bootstrap servers."""


# -- permission


class AuthorizationFailed(KafkaError):
    """Base of the errors that say the user is not allowed to do this."""


class TopicAuthorizationFailed(AuthorizationFailed, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    """This is not allowed on the topic."""


class GroupAuthorizationFailed(AuthorizationFailed, code=ErrorCode.GROUP_AUTHORIZATION_FAILED):
    """This is not allowed on the group."""


class ClusterAuthorizationFailed(AuthorizationFailed, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
    """This is not allowed on the cluster."""


class TransactionalIdAuthorizationFailed(AuthorizationFailed, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """The transactional id may not be used."""


class AuthenticationFailed(KafkaError):
    """Base of the errors that say that this client and the broker could not prove who they are."""


class SaslAuthenticationFailed(AuthenticationFailed, code=ErrorCode.SASL_AUTHENTICATION_FAILED):
    """The credentials are wrong."""


class UnsupportedSaslMechanism(AuthenticationFailed, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM):
    """The broker does not offer that SASL mechanism."""


class SecurityDisabled(KafkaError, code=ErrorCode.SECURITY_DISABLED):
    """The broker has no authorizer, so there are no ACLs."""


class UnacceptableCredential(KafkaError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    """A SCRAM credential has no user, or too few or too many iterations."""


# -- topics, partitions and settings


class UnknownTopicOrPartition(KafkaError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
    """The topic or partition does not exist."""


class UnknownTopicId(KafkaError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    """No topic has that id; it may have been deleted and created again."""


class TopicAlreadyExists(KafkaError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """A topic with that name already exists."""


class InvalidTopic(KafkaError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    """The topic's name is invalid, or the topic does not allow this operation."""


class InvalidPartitions(KafkaError, code=ErrorCode.INVALID_PARTITIONS):
    """The number of partitions is invalid."""


class InvalidReplicationFactor(KafkaError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """The cluster has too few brokers for that replication factor."""


class InvalidReplicaAssignment(KafkaError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """The assignment of replicas to brokers is invalid."""


class TopicDeletionDisabled(KafkaError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    """The broker does not delete topics (`delete.topic.enable`)."""


class InvalidConfig(KafkaError, code=ErrorCode.INVALID_CONFIG):
    """The broker knows no such setting, or refuses its value. A wrong setting of a client is a `ConfigError`."""


class PolicyViolation(KafkaError, code=ErrorCode.POLICY_VIOLATION):
    """A policy of the cluster, or the topic's `cleanup.policy`, forbids it."""


class ReassignmentInProgress(KafkaError, code=ErrorCode.REASSIGNMENT_IN_PROGRESS):
    """The partition is being moved to other brokers."""


class NoReassignmentInProgress(KafkaError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """The partition is not being moved."""


class PreferredLeaderNotAvailable(KafkaError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE):
    """The preferred leader is not available at the moment."""


class EligibleLeadersNotAvailable(KafkaError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
    """No replica that could become the leader is available."""


class ElectionNotNeeded(KafkaError, code=ErrorCode.ELECTION_NOT_NEEDED):
    """The partition already has the leader that the election would choose."""


class ResourceNotFound(KafkaError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """The named resource does not exist."""


class DuplicateResource(KafkaError, code=ErrorCode.DUPLICATE_RESOURCE):
    """The request names a resource more than once."""


# -- writing


class MessageTooLarge(KafkaError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """The record or its batch is larger than the topic (`max.message.bytes`) or the producer allows."""


class RecordListTooLarge(MessageTooLarge, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    """The batch is larger than a segment of the topic (`segment.bytes`)."""


class NotEnoughReplicas(KafkaError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """Fewer replicas are in sync than `min.insync.replicas`; nothing was written."""


class NotEnoughReplicasAfterAppend(NotEnoughReplicas, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
    """The records were written, but too few replicas stayed in sync."""


class InvalidRecord(KafkaError, code=ErrorCode.INVALID_RECORD):
    """A record failed validation, such as one without a key in a compacted topic."""


class InvalidTimestamp(KafkaError, code=ErrorCode.INVALID_TIMESTAMP):
    """A record's timestamp is too far from the broker's time."""


class UnsupportedCompressionType(KafkaError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The broker does not support the compression of the records."""


class InvalidRequiredAcks(KafkaError, code=ErrorCode.INVALID_REQUIRED_ACKS):
    """`acks` is not 0, 1 or all."""


class OutOfOrderSequenceNumber(KafkaError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """An earlier batch of this idempotent producer is missing."""


class DuplicateSequenceNumber(KafkaError, code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
    """The batch had already been written."""


class UnknownProducerId(KafkaError, code=ErrorCode.UNKNOWN_PRODUCER_ID):
    """The broker no longer knows the producer id."""


# -- transactions


class ProducerFenced(KafkaError, code=ErrorCode.PRODUCER_FENCED):
    """A newer producer with the same transactional id has taken over; close this one."""


class InvalidProducerEpoch(ProducerFenced, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    """The producer's epoch is old: a newer instance has taken over, or its transaction timed out."""


class InvalidProducerIdMapping(KafkaError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    """The producer id does not belong to the transactional id."""


class InvalidTxnState(KafkaError, code=ErrorCode.INVALID_TXN_STATE):
    """The transaction's state does not allow this."""


class InvalidTransactionTimeout(KafkaError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    """The transaction timeout is longer than `transaction.max.timeout.ms` of the broker."""


class ConcurrentTransactions(KafkaError, code=ErrorCode.CONCURRENT_TRANSACTIONS):
    """The previous transaction of this transactional id is still being completed."""


class TransactionCoordinatorFenced(KafkaError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    """Another coordinator has taken over the transaction."""


class TransactionalIdNotFound(KafkaError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """No transactional id with that name exists."""


class TransactionAbortable(KafkaError, code=ErrorCode.TRANSACTION_ABORTABLE):
    """The transaction must be aborted; the producer may then begin another."""


# -- reading


class OffsetOutOfRange(KafkaError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The partition has no record with that offset: it was deleted, or is not written yet."""


class OffsetNotAvailable(KafkaError, code=ErrorCode.OFFSET_NOT_AVAILABLE):
    """The new leader does not know the high watermark yet."""


class CorruptMessage(KafkaError, code=ErrorCode.CORRUPT_MESSAGE):
    """The records are damaged or are not a record batch."""


class UnsupportedForMessageFormat(KafkaError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """The message format of the records does not support this."""


# -- groups and committed offsets


class CommitFailed(KafkaError):
    """Base of the errors by which a group refuses a commit of a member that it no longer counts as one. Another member
    may own the partitions; it reads the uncommitted records again."""


class RebalanceInProgress(CommitFailed, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing; the consumer takes part in its next `poll`."""


class IllegalGeneration(CommitFailed, code=ErrorCode.ILLEGAL_GENERATION):
    """The group has rebalanced since."""


class UnknownMemberId(CommitFailed, code=ErrorCode.UNKNOWN_MEMBER_ID):
    """The group has no such member: its session timed out. For commits by an admin client, the group has members."""


class FencedMemberEpoch(CommitFailed, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The member's epoch is not the one that the group has for it (KIP-848)."""


class StaleMemberEpoch(CommitFailed, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member must learn its new epoch first (KIP-848)."""


class FencedInstanceId(KafkaError, code=ErrorCode.FENCED_INSTANCE_ID):
    """Another member with the same `group.instance.id` has taken over; close this consumer."""


class UnreleasedInstanceId(KafkaError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """Another member still holds this `group.instance.id`."""


class InvalidGroupId(KafkaError, code=ErrorCode.INVALID_GROUP_ID):
    """The group id is invalid."""


class GroupIdNotFound(KafkaError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """The group does not exist."""


class NonEmptyGroup(KafkaError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group still has members."""


class GroupDeletionFailed(KafkaError, code=ErrorCode.GROUP_DELETION_FAILED):
    """The group could not be deleted; the message says why."""


class GroupMaxSizeReached(KafkaError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group has its maximum number of members (`group.max.size`)."""


class GroupSubscribedToTopic(KafkaError, code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
    """The group is subscribed to the topic, so its offsets are not deleted."""


class InconsistentGroupProtocol(KafkaError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The consumer supports none of the assignors, or not the protocol, of the group's other members."""


class UnsupportedAssignor(KafkaError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """The broker has no such assignor (KIP-848)."""


class InvalidRegularExpression(KafkaError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """The pattern of a subscription is not a regular expression that the broker understands."""


class InvalidSessionTimeout(KafkaError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """`session.timeout.ms` is outside the range that the broker allows."""


class OffsetMetadataTooLarge(KafkaError, code=ErrorCode.OFFSET_METADATA_TOO_LARGE):
    """The metadata of the committed offset is too long."""


class InvalidCommitOffsetSize(KafkaError, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE):
    """The offsets to commit are too large to be stored."""


class UnstableOffsetCommit(KafkaError, code=ErrorCode.UNSTABLE_OFFSET_COMMIT):
    """A transaction that commits this offset is still open."""


class CoordinatorLoadInProgress(KafkaError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is still loading its state."""


class CoordinatorNotAvailable(KafkaError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE):
    """No coordinator is available at the moment."""


class NotCoordinator(KafkaError, code=ErrorCode.NOT_COORDINATOR):
    """The asked broker does not coordinate that group or transactional id."""
