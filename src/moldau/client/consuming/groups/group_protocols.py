"""Which protocol a consumer speaks with its group: the classic one, or the newer one of KIP-848."""

from collections.abc import Callable

from moldau.client.consuming.consumer_settings import CONSUMER, ConsumerSettings
from moldau.client.consuming.groups.classic_membership import ClassicMembership
from moldau.client.consuming.groups.consumer_membership import ConsumerMembership
from moldau.client.consuming.groups.membership import GroupMembership, GroupSettings
from moldau.client.routing import Router


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
    made = ConsumerMembership if settings.group_protocol == CONSUMER else ClassicMembership
    return made(router, group, wake)
