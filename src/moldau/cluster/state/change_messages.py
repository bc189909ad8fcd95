"""Image changes <-> the messages of FollowCluster. Pure; a message that is not a valid change raises
`ProtocolViolation`."""

from collections.abc import Mapping, Sequence

from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission, Entries
from moldau.cluster.state.image import BrokerImage, Endpoint, PartitionImage, TopicImage
from moldau.cluster.state.image_changes import ImageChange, TopicDifference
from moldau.cluster.state.quotas import QuotaOwner
from moldau.errors import ProtocolViolation
from moldau.protocol.messages.follow_cluster import (
    FollowedAcl,
    FollowedAcls,
    FollowedBroker,
    FollowedChange,
    FollowedDeletion,
    FollowedEndpoint,
    FollowedPartition,
    FollowedQuota,
    FollowedQuotas,
    FollowedSetting,
    FollowedSettings,
    FollowedTopic,
)


def to_message(change: ImageChange) -> FollowedChange:
    return FollowedChange(
        controller_id=change.controller_id,
        controller_epoch=change.controller_epoch,
        brokers=[_broker_message(number, broker) for number, broker in change.brokers.items()],
        broker_settings=_owners(change.broker_overrides),
        group_settings=_owners(change.group_overrides),
        topics=[
            *(
                FollowedTopic(
                    name=topic.name,
                    id=topic.id,
                    settings=_settings(topic.overrides),
                    partitions=[_partition_message(number, one) for number, one in enumerate(topic.partitions)],
                )
                for topic in change.created
            ),
            *(
                FollowedTopic(
                    name=topic.name,
                    settings=None if topic.overrides is None else _settings(topic.overrides),
                    partitions=[_partition_message(number, one) for number, one in topic.partitions.items()],
                )
                for topic in change.changed
            ),
        ],
        removed_topics=list(change.removed),
        deletions=[
            FollowedDeletion(id=topic_id, gone=name is None, name=name or "")
            for topic_id, name in change.deleted.items()
        ],
        acls=[_acls_message(pattern, entries or ()) for pattern, entries in change.acls.items()],
        quotas=[
            FollowedQuotas(
                user=entity.user,
                client_id=entity.client_id,
                ip=entity.ip,
                values=[FollowedQuota(name=name, value=value) for name, value in (values or {}).items()],
            )
            for entity, values in change.quotas.items()
        ],
        client_metrics=_owners(change.client_metrics),
    )


def from_message(message: FollowedChange) -> ImageChange:
    return ImageChange(
        message.controller_id,
        message.controller_epoch,
        {one.id: None if one.gone else _broker(one) for one in message.brokers},
        {one.owner: None if one.gone else _overrides(one.settings) for one in message.broker_settings},
        {one.owner: None if one.gone else _overrides(one.settings) for one in message.group_settings},
        tuple(_created(topic) for topic in message.topics if topic.id.int),
        tuple(_changed(topic) for topic in message.topics if not topic.id.int),
        tuple(message.removed_topics),
        {one.id: None if one.gone else one.name for one in message.deletions},
        dict(map(_acls, message.acls)),
        quotas={
            QuotaOwner(one.user, one.client_id, one.ip): {of.name: of.value for of in one.values} or None
            for one in message.quotas
        },
        client_metrics={one.owner: None if one.gone else _overrides(one.settings) for one in message.client_metrics},
    )


def _acls_message(pattern: AclPattern, entries: Entries) -> FollowedAcls:
    return FollowedAcls(
        resource_type=pattern.resource_type,
        name=pattern.name,
        pattern_type=pattern.pattern_type,
        entries=[
            FollowedAcl(principal=one.principal, host=one.host, operation=one.operation, permission=one.permission)
            for one in entries
        ],
    )


def _acls(message: FollowedAcls) -> tuple[AclPattern, Entries | None]:
    try:
        pattern = AclPattern(message.resource_type, message.name, AclPatternType(message.pattern_type))
        entries = tuple(
            AclEntry(one.principal, one.host, one.operation, AclPermission(one.permission)) for one in message.entries
        )
    except ValueError:
        raise ProtocolViolation(f"access rights on {message.name} that have an unknown type") from None
    return pattern, entries or None


def _owners(overrides: Mapping[str, Mapping[str, str] | None]) -> list[FollowedSettings]:
    return [
        FollowedSettings(owner=owner, gone=own is None, settings=_settings(own or {}))
        for owner, own in overrides.items()
    ]


def _settings(overrides: Mapping[str, str]) -> list[FollowedSetting]:
    return [FollowedSetting(name=name, value=value) for name, value in overrides.items()]


def _overrides(settings: Sequence[FollowedSetting]) -> dict[str, str]:
    return {one.name: one.value for one in settings}


def _broker_message(number: int, broker: BrokerImage | None) -> FollowedBroker:
    if broker is None:
        return FollowedBroker(id=number, gone=True)
    return FollowedBroker(
        id=number,
        epoch=broker.epoch,
        endpoints=[
            FollowedEndpoint(name=one.name, protocol=one.protocol, host=one.host, port=one.port)
            for one in broker.endpoints
        ],
        rack=broker.rack,
        directories=list(broker.directories),
        leaving=broker.leaving,
    )


def _broker(message: FollowedBroker) -> BrokerImage:
    endpoints = tuple(Endpoint(one.name, one.protocol, one.host, one.port) for one in message.endpoints)
    return BrokerImage(message.id, endpoints, message.rack, tuple(message.directories), message.epoch, message.leaving)


def _partition_message(number: int, partition: PartitionImage) -> FollowedPartition:
    return FollowedPartition(
        number=number,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        directories=list(partition.directories),
        made=partition.made,
        partition_epoch=partition.partition_epoch,
        elr=list(partition.elr),
        last_elr=list(partition.last_elr),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )


def _partition(message: FollowedPartition) -> PartitionImage:
    return PartitionImage(
        message.leader,
        message.leader_epoch,
        tuple(message.replicas),
        tuple(message.isr),
        tuple(message.directories),
        message.made,
        message.partition_epoch,
        tuple(message.elr),
        tuple(message.last_elr),
        tuple(message.adding_replicas),
        tuple(message.removing_replicas),
    )


def _created(topic: FollowedTopic) -> TopicImage:
    if [one.number for one in topic.partitions] != list(range(len(topic.partitions))):
        raise ProtocolViolation(f"the partitions of the new topic {topic.name} are not numbered from 0")
    partitions = tuple(_partition(one) for one in topic.partitions)
    return TopicImage(topic.name, topic.id, partitions, _overrides(topic.settings or ()))


def _changed(topic: FollowedTopic) -> TopicDifference:
    overrides = None if topic.settings is None else _overrides(topic.settings)
    return TopicDifference(topic.name, overrides, {one.number: _partition(one) for one in topic.partitions})
