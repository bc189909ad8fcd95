"""The admin client: everything about a cluster except records. `AsyncAdmin` runs on the caller's loop; `Admin` is its
synchronous face, with the same methods.

    with Admin("localhost:9092") as admin:
        admin.create_topic("events", partitions=4, configs={"retention.ms": 86_400_000})

Each method sends its requests to the brokers that are responsible. A retriable error is retried until
`default_api_timeout_ms` is over. Any other is raised as the `KafkaError` of its code, with the broker's message if the
reply has one. Methods about several topics or groups return None or the error of each.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from moldau.client import unclosed
from moldau.client.administration.acls import Acl, AclFilter, AclsPart
from moldau.client.administration.arguments import checked
from moldau.client.administration.cluster import (
    ClusterDescription,
    ClusterPart,
    EligibleLeaders,
    Features,
    LogDir,
    Reassignment,
    ReplicaSize,
    VersionRange,
)
from moldau.client.administration.groups import GroupDescription, GroupListing, GroupMember, GroupsPart
from moldau.client.administration.quotas import QuotasPart
from moldau.client.administration.records import EARLIEST, LATEST, MAX_TIMESTAMP, ListedOffset, RecordsPart
from moldau.client.administration.scram import ScramCredential, ScramDeletion, ScramPart, ScramUpsertion
from moldau.client.administration.tokens import TokenDescription, TokensPart
from moldau.client.administration.topics import NewTopic, TopicsPart
from moldau.client.background import LoopThread
from moldau.client.faces import Face, blocking
from moldau.client.own_loop import of_one_loop
from moldau.client.routing import router_of
from moldau.client.settings import ClientSettings, configured, setting, settings
from moldau.client.shown import shown

if TYPE_CHECKING:
    from moldau.client.administration.configs import AsyncConfigs, ConfigEntry, Configs
    from moldau.client.administration.transactions import AsyncTransactions, Transactions

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Acl",
    "AclFilter",
    "Admin",
    "AdminSettings",
    "AsyncAdmin",
    "ClusterDescription",
    "EligibleLeaders",
    "Features",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "ListedOffset",
    "LogDir",
    "NewTopic",
    "Reassignment",
    "ReplicaSize",
    "ScramCredential",
    "ScramDeletion",
    "ScramUpsertion",
    "TokenDescription",
    "VersionRange",
]


@settings
class AdminSettings(ClientSettings):
    """The settings of an admin client; times are in ms."""

    owner: ClassVar[str] = "the admin client"

    client_id: str = setting(default="moldau-admin", about="The name of this client in the broker's logs and quotas.")
    default_api_timeout_ms: int = setting(default=30_000, low=1, about="Retry this long before a call fails.")


@of_one_loop()
@checked()
class AsyncAdmin(TopicsPart, RecordsPart, GroupsPart, ClusterPart, QuotasPart, ScramPart, TokensPart, AclsPart):
    """An admin client on the running loop. Use it in `async with`. `configs` and `transactions` have more methods."""

    @configured(AdminSettings)
    def __init__(self, settings: AdminSettings):
        self.settings = settings
        self._timeout_ms = settings.default_api_timeout_ms
        self._router = router_of(settings)
        self.own_loop = self._router.own_loop

    def __repr__(self) -> str:
        return self.shown("aio.Admin")

    def shown(self, kind: str) -> str:
        """The client as text."""
        return shown(kind, self.settings, "closed" if self._router.closed else "open")

    async def __aenter__(self) -> "AsyncAdmin":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Bind the client to the running loop; it dials no broker before the first use."""

    async def close(self) -> None:
        """Close the connections; calls that await a reply fail."""
        await self._router.close()

    @cached_property
    def configs(self) -> "AsyncConfigs":
        """The settings of topics, brokers, brokers' loggers and groups."""
        from moldau.client.administration.configs import AsyncConfigs

        return AsyncConfigs(self._router, self._timeout_ms)

    @cached_property
    def transactions(self) -> "AsyncTransactions":
        """Transactions and producers: list, describe, find those that hang, abort."""
        from moldau.client.administration.transactions import AsyncTransactions

        return AsyncTransactions(self._router)

    async def topic_configs(self, topic: str) -> "list[ConfigEntry]":
        """Every setting of a topic, sorted by name; `configs.describe` does the same for brokers and groups."""
        from moldau.client.administration.configs import Resource

        return await self.configs.describe(Resource.TOPIC, topic)

    async def alter_topic_configs(self, topic: str, changes: Mapping[str, object]) -> None:
        """Change settings of a topic; None resets a setting to its default. Raises `InvalidConfig` and others."""
        from moldau.client.administration.configs import Resource

        await self.configs.alter(Resource.TOPIC, topic, changes)


class Admin(Face[AsyncAdmin]):
    """An admin client: everything about a cluster except records. Use it in a with-statement, from any thread.

        with Admin("localhost:9092") as admin:
            admin.create_topic("events", partitions=4, configs={"retention.ms": 86_400_000})

    Retriable errors are retried for `default_api_timeout_ms`. Other errors are raised as the `KafkaError` of their
    code. Methods about several topics or groups return None or the error of each."""

    @configured(AdminSettings)
    def __init__(self, settings: AdminSettings):
        super().__init__(core := AsyncAdmin(settings), LoopThread("moldau-admin"))
        self.settings = settings
        self._thread.start()
        self._thread.run(core.start)
        unclosed.close_when_dropped(self, self._thread, partial(core.shown, "Admin"), core.close)

    def __repr__(self) -> str:
        return self._core.shown("Admin")

    def __enter__(self) -> "Admin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; calls that await a reply fail."""
        self._thread.close(self._core.close)

    @cached_property
    def configs(self) -> "Configs":
        """The settings of topics, brokers, brokers' loggers and groups."""
        from moldau.client.administration.configs import Configs

        return Configs(self._core.configs, self._thread, self)

    @cached_property
    def transactions(self) -> "Transactions":
        """Transactions and producers: list, describe, find those that hang, abort."""
        from moldau.client.administration.transactions import Transactions

        return Transactions(self._core.transactions, self._thread, self)

    list_topics = blocking(AsyncAdmin.list_topics)
    describe_topics = blocking(AsyncAdmin.describe_topics)
    create_topic = blocking(AsyncAdmin.create_topic)
    create_topics = blocking(AsyncAdmin.create_topics)
    create_partitions = blocking(AsyncAdmin.create_partitions)
    expand_topics = blocking(AsyncAdmin.expand_topics)
    delete_topic = blocking(AsyncAdmin.delete_topic)
    delete_topics = blocking(AsyncAdmin.delete_topics)
    topic_configs = blocking(AsyncAdmin.topic_configs)
    alter_topic_configs = blocking(AsyncAdmin.alter_topic_configs)

    list_offsets = blocking(AsyncAdmin.list_offsets)
    offsets = blocking(AsyncAdmin.offsets)
    watermarks = blocking(AsyncAdmin.watermarks)
    delete_records = blocking(AsyncAdmin.delete_records)

    list_groups = blocking(AsyncAdmin.list_groups)
    describe_group = blocking(AsyncAdmin.describe_group)
    describe_groups = blocking(AsyncAdmin.describe_groups)
    group_offsets = blocking(AsyncAdmin.group_offsets)
    group_lag = blocking(AsyncAdmin.group_lag)
    lags = blocking(AsyncAdmin.lags)
    alter_group_offsets = blocking(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = blocking(AsyncAdmin.delete_group_offsets)
    delete_group = blocking(AsyncAdmin.delete_group)
    delete_groups = blocking(AsyncAdmin.delete_groups)

    describe_cluster = blocking(AsyncAdmin.describe_cluster)
    describe_features = blocking(AsyncAdmin.describe_features)
    api_versions = blocking(AsyncAdmin.api_versions)
    describe_log_dirs = blocking(AsyncAdmin.describe_log_dirs)
    describe_eligible_leaders = blocking(AsyncAdmin.describe_eligible_leaders)
    alter_replica_log_dirs = blocking(AsyncAdmin.alter_replica_log_dirs)
    unregister_broker = blocking(AsyncAdmin.unregister_broker)
    elect_leaders = blocking(AsyncAdmin.elect_leaders)
    list_reassignments = blocking(AsyncAdmin.list_reassignments)
    alter_reassignments = blocking(AsyncAdmin.alter_reassignments)
    describe_client_quotas = blocking(AsyncAdmin.describe_client_quotas)
    alter_client_quotas = blocking(AsyncAdmin.alter_client_quotas)
    describe_user_scram_credentials = blocking(AsyncAdmin.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(AsyncAdmin.alter_user_scram_credentials)
    create_delegation_token = blocking(AsyncAdmin.create_delegation_token)
    renew_delegation_token = blocking(AsyncAdmin.renew_delegation_token)
    expire_delegation_token = blocking(AsyncAdmin.expire_delegation_token)
    describe_delegation_tokens = blocking(AsyncAdmin.describe_delegation_tokens)
    describe_acls = blocking(AsyncAdmin.describe_acls)
    create_acls = blocking(AsyncAdmin.create_acls)
    delete_acls = blocking(AsyncAdmin.delete_acls)
