"""Access rights of mirrored topics, copied into the target: those that name a topic or a beginning of its name. They
are added and never taken away, since the target may have reasons of its own; a right on all topics (`*`) stays where it
is.
"""

from collections.abc import Collection, Iterable

from moldau.client.administration.acls import Acl, AclFilter
from moldau.mirror.ends import ClusterEnd

OF_TOPICS = AclFilter(resource_type="topic")
EVERYTHING = "*"


def to_add(of_source: Iterable[Acl], of_target: Collection[Acl], topics: Collection[str]) -> list[Acl]:
    """The rights on these topics that the target lacks."""
    return [
        acl
        for acl in of_source
        if acl.resource_type == "topic"
        and acl not in of_target
        and (
            any(name.startswith(acl.resource) for name in topics)
            if acl.pattern == "prefixed"
            else acl.resource in topics and acl.resource != EVERYTHING
        )
    ]


async def copy_acls(source: ClusterEnd, target: ClusterEnd, topics: Collection[str]) -> int:
    """Returns how many were added. Raises `KafkaError`: SECURITY_DISABLED if one of the clusters has no rights."""
    missing = to_add(await source.admin.describe_acls(OF_TOPICS), await target.admin.describe_acls(OF_TOPICS), topics)
    for error in (await target.admin.create_acls(missing)).values() if missing else ():
        if error is not None:
            raise error
    return len(missing)
