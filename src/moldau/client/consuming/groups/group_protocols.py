"""Which protocol a consumer speaks with its group: the classic one, the newer one of KIP-848, or that of ZooKeeper."""

from collections.abc import Callable

from moldau.client.consuming.consumer_settings import CONSUMER, ConsumerSettings
from moldau.client.consuming.groups.membership import GroupMembership, GroupSettings
from moldau.client.routing import Router
from moldau.client.zookeeper.group_names import GroupLayout


def member_of(router: Router, settings: ConsumerSettings, wake: Callable[[], object]) -> GroupMembership:
    """The membership of a consumer with these settings, which has not joined yet."""
    group = GroupSettings(
        group_id=settings.group_id or "",
        group_instance_id=settings.group_instance_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.max_poll_interval_ms,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        assignors=settings.assignors,
        remote_assignor=settings.group_remote_assignor,
        rack_id=settings.client_rack or None,
    )
    if settings.zookeeper_connect is not None:
        from moldau.client.consuming.groups.zookeeper.zookeeper_membership import ZooKeeperMembership

        return ZooKeeperMembership(
            router,
            group,
            wake,
            layout=GroupLayout(settings.zookeeper_layout),
            backoff_ms=settings.rebalance_backoff_ms,
            retries_max=settings.rebalance_retries_max,
        )
    if settings.group_protocol == CONSUMER:
        from moldau.client.consuming.groups.consumer_membership import ConsumerMembership

        return ConsumerMembership(router, group, wake)
    from moldau.client.consuming.groups.classic_membership import ClassicMembership

    return ClassicMembership(router, group, wake)
