"""FollowCluster (API key 30001, ours): request and response; what has changed in the cluster since a position in the
controller's stream of changes.

In an element that a change can take away, `gone` leaves its other fields without meaning.
"""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, FLOAT64, INT8, INT16, INT32, INT64, STRING, STRUCT, UUID, message


@message
class FollowClusterRequest:
    broker_id: int = INT32()
    broker_epoch: int = INT64()
    controller_epoch: int = INT32(default=-1)
    """The controller that `position` is of; -1 if there is none."""
    position: int = INT64(default=-1)
    """The last change received."""
    applied: int = INT64(default=-1)
    """The last change that this broker acts by."""
    max_wait_ms: int = INT32()
    leaving: bool = BOOL()
    """This broker stops: its leaderships are to move."""


@message
class FollowedEndpoint:
    name: str = STRING()
    protocol: str = STRING()
    host: str = STRING()
    port: int = INT32()


@message
class FollowedBroker:
    id: int = INT32()
    gone: bool = BOOL()
    epoch: int = INT64(default=-1)
    endpoints: list[FollowedEndpoint] = ARRAY(FollowedEndpoint)
    rack: str | None = STRING(nullable=0, default=None)
    directories: list[str] = ARRAY(STRING)
    leaving: bool = BOOL()


@message
class FollowedSetting:
    name: str = STRING()
    value: str = STRING()


@message
class FollowedSettings:
    """The settings of a broker, of a group, or of a subscription to metrics of clients."""

    owner: str = STRING()
    gone: bool = BOOL()
    settings: list[FollowedSetting] = ARRAY(FollowedSetting)


@message
class FollowedPartition:
    number: int = INT32()
    leader: int = INT32()
    leader_epoch: int = INT32()
    replicas: list[int] = ARRAY(INT32)
    isr: list[int] = ARRAY(INT32)
    directories: list[str] = ARRAY(STRING)
    made: bool = BOOL()
    partition_epoch: int = INT32()
    elr: list[int] = ARRAY(INT32)
    last_elr: list[int] = ARRAY(INT32)
    adding_replicas: list[int] = ARRAY(INT32, tag=0)
    removing_replicas: list[int] = ARRAY(INT32, tag=1)


@message
class FollowedTopic:
    """A new topic, with its id, settings and all partitions; or what is different in an existing one."""

    name: str = STRING()
    id: uuid.UUID = UUID()
    """Zero for an existing topic."""
    settings: list[FollowedSetting] | None = ARRAY(FollowedSetting, nullable=0, default=None)
    partitions: list[FollowedPartition] = ARRAY(FollowedPartition)


@message
class FollowedDeletion:
    """A deleted topic whose data may still be on some disk; `gone` once it is on none."""

    id: uuid.UUID = UUID()
    gone: bool = BOOL()
    name: str = STRING()


@message
class FollowedAcl:
    principal: str = STRING()
    host: str = STRING()
    operation: int = INT8()
    permission: int = INT8()


@message
class FollowedAcls:
    """The access rights on the resources of a pattern; gone if it has no entries."""

    resource_type: int = INT8()
    name: str = STRING()
    pattern_type: int = INT8()
    entries: list[FollowedAcl] = ARRAY(FollowedAcl)


@message
class FollowedQuota:
    name: str = STRING()
    value: float = FLOAT64()


@message
class FollowedQuotas:
    """The quotas of an entity, none once they are gone. A null part is one that the entity does not have, an empty one
    stands for the default."""

    user: str | None = STRING(nullable=0, default=None)
    client_id: str | None = STRING(nullable=0, default=None)
    ip: str | None = STRING(nullable=0, default=None)
    values: list[FollowedQuota] = ARRAY(FollowedQuota)


@message
class FollowedChange:
    controller_id: int = INT32(default=-1)
    controller_epoch: int = INT32()
    brokers: list[FollowedBroker] = ARRAY(FollowedBroker)
    broker_settings: list[FollowedSettings] = ARRAY(FollowedSettings)
    group_settings: list[FollowedSettings] = ARRAY(FollowedSettings)
    topics: list[FollowedTopic] = ARRAY(FollowedTopic)
    removed_topics: list[str] = ARRAY(STRING)
    deletions: list[FollowedDeletion] = ARRAY(FollowedDeletion)
    acls: list[FollowedAcls] = ARRAY(FollowedAcls, tag=0)
    quotas: list[FollowedQuotas] = ARRAY(FollowedQuotas, tag=1)
    client_metrics: list[FollowedSettings] = ARRAY(FollowedSettings, tag=2)


@message
class FollowClusterResponse:
    error_code: int = INT16()
    controller_epoch: int = INT32()
    position: int = INT64()
    """Of the last of the changes."""
    may_leave: bool = BOOL()
    """The broker that leaves is in sync for nothing, and the others act by that: it may stop."""
    whole: FollowedChange | None = STRUCT(FollowedChange, nullable=0, default=None)
    """The cluster as a change from an empty one, instead of changes."""
    changes: list[FollowedChange] = ARRAY(FollowedChange)
