"""DescribeClientQuotas (key 48) and AlterClientQuotas (49), versions 0 and 1: this broker has no quotas.

A filter is checked as in Kafka and matches nothing. Removing a quota succeeds, since none exists. Setting one is
refused as INVALID_REQUEST, because the broker would not enforce it (KIP-546).
"""

from moldau.cluster.controlling.controller import Refusal
from moldau.errors import ErrorCode
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    EntryResult,
)
from moldau.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.requests.session import Call

IP = "ip"
KINDS = ("user", "client-id", IP)
"""Entity types of quotas."""
EXACT, DEFAULT, ANY = range(3)
"""Match types of a filter component: an exact name, the default entity, any name."""


def describe(request: DescribeClientQuotasRequest, call: Call) -> DescribeClientQuotasResponse:
    seen: set[str] = set()
    for component in request.components:
        refusal = _filter_refusal(component, seen)
        if refusal:
            return DescribeClientQuotasResponse(error_code=refusal.code, error_message=refusal.message, entries=None)
        seen.add(component.entity_type)
    return DescribeClientQuotasResponse()


def _filter_refusal(component: ComponentData, seen: set[str]) -> Refusal | None:
    """The reason why a filter cannot have this component together with those of the types `seen`, or None."""
    kind, code = component.entity_type, ErrorCode.INVALID_REQUEST
    if not kind:
        return Refusal(code, "a component of the filter has no type")
    if kind in seen:
        return Refusal(code, f"the filter has two components of type {kind[:200]}")
    if component.match_type not in (EXACT, DEFAULT, ANY):
        return Refusal(code, f"match type {component.match_type} is unknown")
    if (component.match is None) == (component.match_type == EXACT):
        return Refusal(code, "an exact match needs a name, and any other match must not have one")
    if kind not in KINDS:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"quotas of the entity type {kind[:200]} are not supported")
    if IP in {kind, *seen} and seen:
        return Refusal(code, "a filter may have either addresses, or users and client ids")
    return None


def alter(request: AlterClientQuotasRequest, call: Call) -> AlterClientQuotasResponse:
    entries = []
    for entry in request.entries:
        code, message = _refusal(entry) or (ErrorCode.NONE, None)
        entries.append(EntryResult(error_code=code, error_message=message, entity=entry.entity))
    return AlterClientQuotasResponse(entries=entries)


def _refusal(entry: EntryData) -> Refusal | None:
    code = ErrorCode.INVALID_REQUEST
    if not entry.entity:
        return Refusal(code, "a quota needs a user, a client id or an address")
    for entity in entry.entity:
        if entity.entity_type not in KINDS:
            return Refusal(code, f"quotas of the entity type {entity.entity_type[:200]} are not supported")
    if any(not one.remove for one in entry.ops):
        return Refusal(code, "this broker does not enforce client quotas")
    return None
