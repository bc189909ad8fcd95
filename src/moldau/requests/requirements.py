"""The rights that a whole request needs, as a rule of the gate."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.protocol.apis import Api
from moldau.requests.access import CLUSTER_NAME, Right
from moldau.requests.gate import Verdict
from moldau.requests.session import Call


class Requirement(NamedTuple):
    """One of the rights `any_of`, on the resource that the request's field `named_by` names; on the cluster if it is
    None."""

    any_of: tuple[Right, ...]
    named_by: str | None = None


class Rights(NamedTuple):
    """What an API asks for: all of `whole`, which the gate judges in this order before the handler, and `parts`, which
    the handler asks for each resource that a request names or that a reply would show."""

    whole: tuple[Requirement, ...] = ()
    parts: tuple[Right, ...] = ()


class Requirements:
    """A rule of the gate: it refuses a request whose client lacks a right that the whole request needs."""

    def __init__(self, rights: Mapping[Api, Rights]):
        self._whole = {api.key: one.whole for api, one in rights.items()}

    def by_key(self) -> dict[int, "Requirements"]:
        """This rule for each API that has such rights, by key."""
        return {key: self for key, whole in self._whole.items() if whole}

    def __call__(self, request: Any, call: Call) -> Verdict | None:
        for any_of, named_by in self._whole[call.key]:
            name = CLUSTER_NAME if named_by is None else getattr(request, named_by)
            last = any_of[-1]
            # Only the last of several rights refuses the request; those before it are tried.
            if not any(call.may(right, name, logged=right is last) for right in any_of):
                return Verdict(last.denied)
        return None
