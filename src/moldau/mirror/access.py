"""Access rights of mirrored topics, copied into the target: those that name a topic or a beginning of its name. They
are added and never taken away, since the target may have reasons of its own; a right on all topics (`*`) stays where it
is.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from moldau.client.administration.acls import Acl, AclFilter
from moldau.mirror.ends import ClusterEnd
from moldau.names import counted

logger = logging.getLogger(__name__)
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


async def copy_acls(
    source: ClusterEnd, target: ClusterEnd, missing: Callable[[list[Acl], list[Acl]], list[Acl]]
) -> None:
    """Add the rights that are `missing`, given those of source and target. Raises `KafkaError`: SECURITY_DISABLED if
    one of the clusters has no authorizer."""
    added = missing(await source.admin.describe_acls(OF_TOPICS), await target.admin.describe_acls(OF_TOPICS))
    for error in (await target.admin.create_acls(added)).values() if added else ():
        if error is not None:
            raise error
    if added:
        logger.info("%s of mirrored topics copied", counted(len(added), "access right"))
