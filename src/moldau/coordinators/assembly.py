"""The coordinators of one broker. Each is made on first use: importing it takes a fifth of the start-up time, and an
empty broker has no groups and no transactions.

They coordinate the partitions of their internal topics that this broker leads, and follow changes of the cluster. A
topic that exists at the start is loaded at once.
"""

from collections.abc import Awaitable, Coroutine, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from moldau.cluster.producer_ids import ProducerIds
from moldau.cluster.state.image import Image, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.coordinators.importing import import_for
from moldau.errors import ErrorCode
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TransactionMarkers
from moldau.replication.internal_topic import InternalTopic
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.cluster.broker_links import BrokerLinks
    from moldau.coordinators.groups.coordinator import GroupCoordinator
    from moldau.coordinators.transactions.coordinator import TransactionCoordinator
    from moldau.coordinators.transactions.messages import AddsPartitions, WriteMarkers
    from moldau.replication.markers import MarkerWriter

MINUTE_MS = 60_000
TRANSACTION_COMMIT_TIMEOUT_MS = 30_000
"""How long a record of a transaction waits until it is committed: the default of Kafka's `request.timeout.ms`."""


class Coordinators:
    """Use it only on the event loop. `links` lead to the other brokers of the cluster; None if there are none."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: MetadataCache,
        producer_ids: ProducerIds,
        replicas: Replicas,
        runtime: Runtime,
        links: "BrokerLinks | None" = None,
    ):
        self._config = config
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._replicas = replicas
        self._runtime = runtime
        self._links = links
        self._followed = metadata.image

    async def follow(self, image: Image, names: Sequence[str]) -> None:
        """These topics changed: lead the partitions of internal topics that this broker leads now, and no others."""
        for topic, is_made in ((OFFSETS_TOPIC, self._has_groups), (TRANSACTIONS_TOPIC, self._has_transactions)):
            if topic in names and topic in image.topics and not is_made:
                await self._runtime.run(partial(import_for, topic))
        for topic, let_go in ((OFFSETS_TOPIC, self._lead_no_groups), (TRANSACTIONS_TOPIC, self._lead_no_transactions)):
            if _is_another(self._followed.topics.get(topic), image.topics.get(topic)):
                let_go()
        self._followed = image
        self._lead_groups(image, names)
        self._lead_transactions(image, names)

    def lead_again(self) -> None:
        """Replicas here were cut off from the cluster, or are so no more. A coordinator that may have been replaced
        resigns: it could tell of offsets and members that are outdated, and would miss the heartbeats of those that
        have gone to another one. It loads its partition again when it is sure to lead it."""
        self._lead_groups(self._followed, [OFFSETS_TOPIC])
        self._lead_transactions(self._followed, [TRANSACTIONS_TOPIC])

    async def stop(self) -> None:
        if self._has_transactions:
            await self.transactions.stop()
        if self._has_groups:
            await self.groups.stop()

    def forget_topics(self, image: Image, names: Sequence[str]) -> Coroutine[Any, Any, None] | None:
        """Delete the offsets of those of the topics that no longer exist, or are other ones by now: a broker may hear
        of both changes at once."""
        before = self._followed.topics
        gone = [name for name in names if name not in image.topics or _is_another(before.get(name), image.topics[name])]
        return self.groups.forget_topics(gone) if gone and self._has_groups else None

    def _lead_groups(self, image: Image, names: Sequence[str]) -> None:
        topic = image.topics.get(OFFSETS_TOPIC)
        if OFFSETS_TOPIC in names and (topic is not None or self._has_groups):
            self.groups.partitions = self._offsets_partitions()
            self.groups.lead_only(self._led_epochs(topic))

    def _lead_transactions(self, image: Image, names: Sequence[str]) -> None:
        topic = image.topics.get(TRANSACTIONS_TOPIC)
        if TRANSACTIONS_TOPIC in names and (topic is not None or self._has_transactions):
            self.transactions.partitions = self._transaction_partitions()
            self.transactions.lead_only(self._led_epochs(topic))
        if self._has_transactions:
            self.transactions.partitions_changed()

    def _lead_no_groups(self) -> None:
        if self._has_groups:
            self.groups.lead_only({})

    def _lead_no_transactions(self) -> None:
        if self._has_transactions:
            self.transactions.lead_only({})

    def _led_epochs(self, topic: TopicImage | None) -> dict[int, int]:
        """The partitions of the topic that this broker leads and is not cut off in, and in which leader epoch."""
        if topic is None:
            return {}
        return {
            number: part.leader_epoch
            for number, part in enumerate(topic.partitions)
            if part.leader == self._config.node_id and not self._is_cut_off(topic.name, number)
        }

    def _is_cut_off(self, topic: str, number: int) -> bool:
        replica = self._replicas.hosted.get((topic, number))
        return replica is not None and replica.is_cut_off

    @cached_property
    def groups(self) -> "GroupCoordinator":
        """Made on first use (see the module)."""
        from moldau.coordinators.classic.messages import ClassicGroupSettings
        from moldau.coordinators.consumer.messages import ConsumerGroupSettings
        from moldau.coordinators.groups.coordinator import GroupCoordinator
        from moldau.coordinators.groups.settings import GroupCoordinatorSettings
        from moldau.coordinators.offsets.messages import OffsetSettings

        config = self._config
        settings = GroupCoordinatorSettings(
            classic=ClassicGroupSettings(
                initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
                min_session_timeout_ms=config.group_min_session_timeout_ms,
                max_session_timeout_ms=config.group_max_session_timeout_ms,
                max_size=config.group_max_size,
            ),
            consumer=ConsumerGroupSettings(
                of_group=self._metadata.group_config,
                max_size=config.group_consumer_max_size,
                assignors=config.group_consumer_assignors,
                migration_policy=config.group_consumer_migration_policy,
                classic_max_size=config.group_max_size,
                enabled="consumer" in config.group_coordinator_rebalance_protocols,
            ),
            offsets=OffsetSettings(
                metadata_max_bytes=config.offset_metadata_max_bytes,
                retention_ms=config.offsets_retention_minutes * MINUTE_MS,
                retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            ),
        )
        read_bytes, commit_timeout_ms = config.offsets_load_buffer_size, config.offsets_commit_timeout_ms
        topic = InternalTopic(OFFSETS_TOPIC, self._replicas, read_bytes, commit_timeout_ms, self._runtime)
        return GroupCoordinator(
            settings, topic, self._runtime, self._offsets_partitions(), lambda: self._metadata.image
        )

    @cached_property
    def transactions(self) -> "TransactionCoordinator":
        """Made on first use (see the module)."""
        from moldau.coordinators.transactions.coordinator import TransactionCoordinator
        from moldau.coordinators.transactions.messages import TransactionSettings

        config, metadata, runtime = self._config, self._metadata, self._runtime
        settings = TransactionSettings(
            max_timeout_ms=config.transaction_max_timeout_ms,
            id_expiration_ms=config.transactional_id_expiration_ms,
            abort_timed_out_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            remove_expired_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        )
        read_bytes = config.transaction_state_log_load_buffer_size
        topic = InternalTopic(TRANSACTIONS_TOPIC, self._replicas, read_bytes, TRANSACTION_COMMIT_TIMEOUT_MS, runtime)
        return TransactionCoordinator(
            settings,
            topic,
            runtime,
            self._transaction_partitions(),
            self._producer_ids.next,
            self._markers_for_all(),
            lambda: metadata.image,
        )

    def _markers_for_all(self) -> "WriteMarkers":
        if self._links is None:
            return self.markers
        from moldau.coordinators.transactions.remote import MarkersForAll

        return MarkersForAll(self._config.node_id, lambda: self._metadata.image, self.markers, self._links.call)

    @cached_property
    def coordinator_anywhere(self) -> "AddsPartitions":
        """The coordinator of any transaction, here or on another broker."""
        if self._links is None:
            return self.transactions
        from moldau.coordinators.transactions.remote import CoordinatorAnywhere

        return CoordinatorAnywhere(
            self._config.node_id, lambda: self._metadata.image, lambda: self.transactions, self._links.call
        )

    @cached_property
    def markers(self) -> "MarkerWriter":
        from moldau.replication.markers import MarkerWriter

        def end_offsets(partition: int, markers: TransactionMarkers) -> ErrorCode | Awaitable[ErrorCode]:
            return self.groups.end_transaction(
                partition,
                markers.producer_id,
                markers.epoch,
                markers.coordinator_epoch,
                markers.commits,
                markers.transaction_version,
            )

        return MarkerWriter(self._replicas, lambda: self._metadata.image, end_offsets, self._runtime)

    @property
    def made_groups(self) -> "GroupCoordinator | None":
        """None if nobody has asked for groups yet."""
        return self.groups if self._has_groups else None

    @property
    def made_transactions(self) -> "TransactionCoordinator | None":
        """None if nobody has asked for transactions yet."""
        return self.transactions if self._has_transactions else None

    @property
    def _has_transactions(self) -> bool:
        return "transactions" in vars(self)

    def _transaction_partitions(self) -> int:
        topic = self._metadata.image.topics.get(TRANSACTIONS_TOPIC)
        return len(topic.partitions) if topic else self._config.transaction_state_log_num_partitions

    @property
    def _has_groups(self) -> bool:
        return "groups" in vars(self)

    def _offsets_partitions(self) -> int:
        topic = self._metadata.image.topics.get(OFFSETS_TOPIC)
        return len(topic.partitions) if topic else self._config.offsets_topic_num_partitions


def _is_another(before: TopicImage | None, after: TopicImage | None) -> bool:
    """Whether the topic was deleted and made anew."""
    return before is not None and after is not None and before.id != after.id
