"""DescribeClientQuotas (key 48) and AlterClientQuotas (49), versions 0 and 1: limits of users, clients and addresses.

An alteration is refused or made entity by entity; all that are made are one step. As in Kafka an entity that a request
names twice is answered once, with INVALID_REQUEST. The controller alters; every broker describes (KIP-546, KIP-612).
Two differences: a quota must be above 0 (a connection rate may be 0, which lets none in), and an address is not the
name of a host.
"""

import ipaddress
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.controlling.quota_changes import QuotaChange, QuotaChanges
from moldau.cluster.state.image import Image
from moldau.cluster.state.quotas import CONNECTION, DEFAULT, OF_ADDRESSES, OF_CLIENTS, QuotaOwner, QuotaValues
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.responding import not_made
from moldau.protocol.messages import describe_client_quotas as described
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryResult,
)
from moldau.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

EntityParts: TypeAlias = tuple[tuple[str, str | None], ...]
"""An entity as a request names it: types and names, None for the default."""
USER, CLIENT_ID, IP = KINDS = ("user", "client-id", "ip")
"""Entity types of quotas, in the order of the parts of `QuotaOwner`."""
EXACT, DEFAULT_ONLY, ANY = range(3)
"""Match types of a filter component: an exact name, the default entity, any name."""
NAME_MAX = 1024
"""The longest name of an entity: a node of the store has to have it as its name."""
_INT_MAX, _LONG_MAX = (1 << 31) - 1, (1 << 63) - 1
_LARGEST = {CONNECTION: _INT_MAX}
_EPSILON = 1e-6
_CODE = ErrorCode.INVALID_REQUEST


class DescribeQuotas:
    """`image` returns the cluster as this broker knows it."""

    def __init__(self, image: Callable[[], Image]):
        self._image = image

    def __call__(self, request: DescribeClientQuotasRequest, call: Call) -> Steps[DescribeClientQuotasResponse]:
        seen: set[str] = set()
        for component in request.components:
            refusal = _filter_refusal(component, seen)
            if refusal:
                code, message = refusal
                return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
            seen.add(component.entity_type)
        entries = []
        for entity, values in self._image().quotas.items():
            parts = {kind: name for kind, name in zip(KINDS, entity, strict=True) if name is not None}
            if _is_meant(request, parts):
                entries.append(_entry(parts, values))
            yield
        return DescribeClientQuotasResponse(entries=entries)


def _entry(parts: Mapping[str, str], values: QuotaValues) -> described.EntryData:
    return described.EntryData(
        entity=[described.EntityData(entity_type=kind, entity_name=name or None) for kind, name in parts.items()],
        values=[described.ValueData(key=key, value=float(value)) for key, value in values.items()],
    )


def _is_meant(request: DescribeClientQuotasRequest, parts: Mapping[str, str]) -> bool:
    if request.strict and len(parts) != len(request.components):
        return False
    return all(_matches(component, parts.get(component.entity_type)) for component in request.components)


def _matches(component: ComponentData, name: str | None) -> bool:
    """Whether the part of an entity, None if it does not have it, is as the filter demands."""
    if name is None or component.match_type == ANY:
        return name is not None
    return name == (DEFAULT if component.match_type == DEFAULT_ONLY else component.match)


def _filter_refusal(component: ComponentData, seen: set[str]) -> Refusal | None:
    """The reason why a filter cannot have this component together with those of the types `seen`, or None."""
    kind = component.entity_type
    if not kind:
        return Refusal(_CODE, "a component of the filter has no type")
    if kind in seen:
        return Refusal(_CODE, f"the filter has two components of type {kind[:200]}")
    if component.match_type not in (EXACT, DEFAULT_ONLY, ANY):
        return Refusal(_CODE, f"match type {component.match_type} is unknown")
    if (component.match is None) == (component.match_type == EXACT):
        return Refusal(_CODE, "an exact match needs a name, and any other match must not have one")
    if kind not in KINDS:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"quotas of the entity type {kind[:200]} are not supported")
    if IP in {kind, *seen} and seen:
        return Refusal(_CODE, "a filter may have either addresses, or users and client ids")
    return None


class AlterQuotas:
    """`queue` is the controller's."""

    def __init__(self, queue: ChangeQueue):
        self._changes = QuotaChanges(queue)

    async def __call__(self, request: AlterClientQuotasRequest, call: Call) -> AlterClientQuotasResponse:
        answers: dict[EntityParts, Refusal | None] = {}
        wanted: dict[EntityParts, QuotaChange] = {}
        async for entry in in_turns(request.entries):
            parts = tuple(sorted({one.entity_type: one.entity_name for one in entry.entity}.items()))
            if parts in answers:
                wanted.pop(parts, None)
                answers[parts] = Refusal(_CODE, f"Ignoring duplicate entity {_shown(parts)}")
                continue
            decided = _decided(parts, entry)
            answers[parts] = decided if isinstance(decided, Refusal) else None
            if isinstance(decided, QuotaChange):
                wanted[parts] = decided
        if wanted and not request.validate_only:
            try:
                await self._changes.alter(list(wanted.values()))
            except (StorageError, KafkaError) as error:
                answers |= dict.fromkeys(wanted, not_made(error))
        entries = []
        for parts, refusal in answers.items():
            code, message = refusal or (ErrorCode.NONE, None)
            entity = [EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
            entries.append(EntryResult(error_code=code, error_message=message, entity=entity))
        return AlterClientQuotasResponse(entries=entries)


def _shown(parts: EntityParts) -> str:
    return ", ".join(f"{kind[:200]} {'<default>' if name is None else name[:200]}" for kind, name in parts)


def _decided(parts: EntityParts, entry: EntryData) -> QuotaChange | Refusal:
    """The change that the entry asks for, or why it is refused."""
    entity = _entity(parts)
    if isinstance(entity, Refusal):
        return entity
    values: dict[str, float | None] = {}
    for one in entry.ops:
        if one.key in values:
            return Refusal(_CODE, f"Duplicate quota key {one.key[:200]} of {_shown(parts)}")
        allowed = OF_CLIENTS if entity.ip is None else OF_ADDRESSES
        if not one.remove and (refusal := _value_refusal(one.key, one.value, allowed)) is not None:
            return refusal
        values[one.key] = None if one.remove else one.value
    return QuotaChange(entity, values)


def _entity(parts: EntityParts) -> QuotaOwner | Refusal:
    if not parts:
        return Refusal(_CODE, "Invalid empty client quota entity: a quota needs a user, a client id or an address")
    names = dict(parts)
    for kind, name in parts:
        if kind not in KINDS:
            return Refusal(_CODE, f"Unhandled client quota entity type: {kind[:200]}")
        if name == "":
            return Refusal(_CODE, f"Empty {kind} not supported")
        if name is not None and (len(name) > NAME_MAX):
            return Refusal(_CODE, f"a {kind} of quotas must have at most {NAME_MAX} characters")
    if IP in names and len(names) > 1:
        return Refusal(
            _CODE, "Invalid quota entity combination: an address has quotas alone, without user and client id"
        )
    if (address := names.get(IP)) is not None and not _is_address(address):
        return Refusal(_CODE, f"{address[:200]} is not an IP address; the names of hosts are not looked up here")
    user, client_id, ip = (DEFAULT if kind in names and names[kind] is None else names.get(kind) for kind in KINDS)
    return QuotaOwner(user, client_id, ip)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _value_refusal(key: str, value: float, allowed: Mapping[str, type]) -> Refusal | None:
    kind = allowed.get(key)
    if kind is None:
        return Refusal(_CODE, f"Invalid configuration key {key[:200]}")
    if not math.isfinite(value) or value < 0 or (value == 0 and key != CONNECTION):
        return Refusal(_CODE, f"{key} must be {'at least' if key == CONNECTION else 'above'} 0, not {value:g}")
    if kind is int and (abs(value - round(value)) > _EPSILON or value > _LARGEST.get(key, _LONG_MAX)):
        return Refusal(_CODE, f"{key} must be a whole number up to {_LARGEST.get(key, _LONG_MAX)}, not {value:g}")
    return None
