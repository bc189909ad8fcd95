"""Access rights of mirrored topics under their names in the target, by MirrorMaker's rule. Pure.

Rights that name one topic are copied. Nobody may write to a mirror because of the source: a right to write is left out,
and one to everything becomes one to read. Rights are added, never taken away.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping

from moldau.client.administration.acls import Acl


def rights_to_add(of_source: Iterable[Acl], of_target: Collection[Acl], remotes: Mapping[str, str]) -> list[Acl]:
    """The rights that the target lacks. `remotes`: the names in the target of the mirrored topics."""
    wanted: list[Acl] = []
    for acl in of_source:
        if acl.resource_type != "topic" or acl.pattern != "literal" or acl.resource not in remotes:
            continue
        if acl.permission == "allow" and acl.operation == "write":
            continue
        reads_only = acl.permission == "allow" and acl.operation == "all"
        there = dataclasses.replace(
            acl, resource=remotes[acl.resource], operation="read" if reads_only else acl.operation
        )
        if there not in of_target and there not in wanted:
            wanted.append(there)
    return wanted
