"""Decides about rights by the ACLs of the cluster, from memory: an index by resource, and every decision kept.

A decision is kept until ACLs change. What is kept is bounded: when it is full, all of it is forgotten, so that a client
with ever new names costs what it does without.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from moldau.cluster.state.acls import EVERYONE, WILDCARD, AclEntry, AclPattern, AclPatternType, Acls, Entries
from moldau.cluster.state.image import Image
from moldau.requests.access import WRITE_TOPIC, ResourceType, Right
from moldau.requests.session import Call
from moldau.security.rules import SUPER_USER, Asking, RightDecision, address, allowed_somewhere, decided

KEPT_MAX = 50_000
KEPT_NAME_MAX = 512
"""A decision about a longer name is not kept."""
FEW = 8
"""Entries that are looked at one by one."""
_SUPER = RightDecision(True, SUPER_USER)
_ANY_NAME = "hardcode"
"""A name as any other, as Kafka asks for it."""


class AclIndex:
    """The patterns of ACLs by resource type and name."""

    def __init__(self, acls: Acls):
        self._acls: Acls = {}
        self._literal: dict[int, dict[str, tuple[AclPattern, Entries]]] = {kind: {} for kind in ResourceType}
        self._prefixed: dict[int, dict[str, tuple[AclPattern, Entries]]] = {kind: {} for kind in ResourceType}
        self._by_principal: dict[AclPattern, dict[str, list[AclEntry]]] = {}
        """The entries of patterns that were asked for, by their principals."""
        self._lengths: dict[int, list[int]] = {kind: [] for kind in ResourceType}
        """Of the prefixes, the longest first."""
        self.take_over(acls)

    def take_over(self, acls: Acls) -> None:
        """Index these ACLs; only what has changed is touched."""
        before, self._acls = self._acls, acls
        for pattern in before:
            if pattern not in acls:
                self._of(pattern).pop(pattern.name, None)
                self._by_principal.pop(pattern, None)
        for pattern, entries in acls.items():
            if before.get(pattern) is not entries:
                self._of(pattern)[pattern.name] = pattern, entries
                self._by_principal.pop(pattern, None)
        for kind, prefixes in self._prefixed.items():
            self._lengths[kind] = sorted({len(prefix) for prefix in prefixes}, reverse=True)

    def _of(self, pattern: AclPattern) -> dict[str, tuple[AclPattern, Entries]]:
        index = self._literal if pattern.pattern_type is AclPatternType.LITERAL else self._prefixed
        return index[pattern.resource_type]

    def about(self, resource_type: int, name: str, principal: str) -> Iterator[tuple[AclPattern, Entries]]:
        """The patterns that are about a resource, the most specific first, with what they say of that principal and of
        everybody. A pattern may have thousands of entries for others."""
        for pattern, entries in self._about(resource_type, name):
            if len(entries) <= FEW:
                yield pattern, entries
                continue
            found = self._by_principal.get(pattern)
            if found is None:
                found = self._by_principal[pattern] = {}
                for entry in entries:
                    found.setdefault(entry.principal, []).append(entry)
            yield pattern, (*found.get(principal, ()), *found.get(EVERYONE, ()))

    def _about(self, resource_type: int, name: str) -> Iterator[tuple[AclPattern, Entries]]:
        literal, prefixed = self._literal[resource_type], self._prefixed[resource_type]
        if (found := literal.get(name)) is not None:
            yield found
        for length in self._lengths[resource_type]:
            if length <= len(name) and (found := prefixed.get(name[:length])) is not None:
                yield found
        if name != WILDCARD and (found := literal.get(WILDCARD)) is not None:
            yield found

    def of_type(self, resource_type: int) -> Iterator[tuple[AclPattern, Entries]]:
        yield from self._literal[resource_type].values()
        yield from self._prefixed[resource_type].values()


class AclAuthorizer:
    """See `Authorizer`. `denied` is told of every denial that refuses something."""

    def __init__(
        self,
        image: Image,
        super_users: Collection[str],
        allow_if_none: bool,
        denied: Callable[[Call, Right, str, RightDecision], None] = lambda *_: None,
    ):
        self._acls = image.acls
        self._index = AclIndex(image.acls)
        self._super_users = frozenset(super_users)
        self._allow_if_none = allow_if_none
        self._denied = denied
        self._kept: dict[tuple[str, str, Right, str | None], RightDecision] = {}
        self._writable: dict[tuple[str, str], set[str]] = {}
        """Topics among those decisions to which a client may write, by principal and address: sessions look there."""

    def follow(self, image: Image, _: Sequence[str] = ()) -> None:
        """Decide by the ACLs of this image from now on."""
        if image.acls is not self._acls:
            self._acls = image.acls
            self._index.take_over(image.acls)
            self._forget()

    def allows(self, call: Call, right: Right, name: str, logged: bool) -> bool:
        session = call.session
        decision = self._kept.get((session.principal, session.peer.host, right, name))
        if decision is None:
            decision = self._decided(call, right, name)
        if decision.allowed:
            if right == WRITE_TOPIC and len(name) <= KEPT_NAME_MAX:
                client = session.principal, session.peer.host
                session.writable = writable = self._writable.setdefault(client, set())
                writable.add(name)
            return True
        if logged:
            self._denied(call, right, name, decision)
        return False

    def allows_any(self, call: Call, right: Right) -> bool:
        session = call.session
        decision = self._kept.get((session.principal, session.peer.host, right, None))
        if decision is None:
            decision = self._decided(call, right, None)
        return decision.allowed

    def decision(self, principal: str, host: str, right: Right, name: str) -> RightDecision:
        """The decision about a client, and what decided."""
        if principal in self._super_users:
            return _SUPER
        who = Asking(principal, address(host))
        matching = self._index.about(right.resource_type, name, principal)
        return decided(matching, who, right.operation, self._allow_if_none)

    def _forget(self) -> None:
        """Decide anew. Sessions that hold one of these sets find nothing in it from now on."""
        self._kept.clear()
        for names in self._writable.values():
            names.clear()
        self._writable.clear()

    def _decided(self, call: Call, right: Right, name: str | None) -> RightDecision:
        principal, host = call.session.principal, call.session.peer.host
        decision = self.decision(principal, host, right, _ANY_NAME if name is None else name)
        if name is None and not decision.allowed:
            acls, who = self._index.of_type(right.resource_type), Asking(principal, address(host))
            decision = decision._replace(allowed=allowed_somewhere(acls, who, right.operation))
        if len(self._kept) >= KEPT_MAX:
            self._forget()
        if name is None or len(name) <= KEPT_NAME_MAX:
            self._kept[principal, host, right, name] = decision
        return decision
