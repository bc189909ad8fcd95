"""DescribeAcls, CreateAcls and DeleteAcls (keys 29, 30, 31; versions 1 to 3): who may do what (KIP-140, KIP-290).

A broker without `authorizer.class.name` answers SECURITY_DISABLED, once for a description and once for each creation or
filter. Each creation is judged by itself; an ACL that exists is made again without an error, and kept once. The message
beside a success is "", or null in DeleteAcls, as in Kafka. Resources are described in order of type, name and pattern.

A request with a value that means "unknown" (0) closes its connection, as by Kafka. What Kafka answers with an unknown
error (a pattern type MATCH, an operation ANY) is INVALID_REQUEST here.
"""

from collections.abc import Sequence
from typing import Any

from moldau.cluster.controlling.acl_changes import AclChanges, OneAcl
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError, ProtocolViolation, StorageError
from moldau.handlers.responding import not_made
from moldau.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from moldau.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from moldau.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from moldau.requests.session import Call
from moldau.security.selecting import AclSelection, Invalid, made
from moldau.turns import Steps, in_turns

UNKNOWN = 0
"""Kafka's number of a resource type, pattern type, operation or permission that it does not know."""
SENTENCE = "this broker has no access rights (ACLs): no authorizer is configured"
OF_A_PORTION = 2000
"""ACLs that are made together."""


class AclAdministration:
    def __init__(self, metadata: MetadataCache, changes: AclChanges):
        self._metadata = metadata
        self._changes = changes

    @property
    def _is_enabled(self) -> bool:
        return bool(self._metadata.config.authorizer_class_name)

    def describe(self, request: DescribeAclsRequest, call: Call) -> Steps[DescribeAclsResponse]:
        which = _filter(request)
        if not self._is_enabled:
            return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=SENTENCE)
        resources = []
        for pattern, entries in sorted(self._metadata.image.acls.items()):
            if which.selects_pattern(pattern):
                described = DescribeAclsResource(
                    resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
                )
                for entry in filter(which.selects_entry, entries):
                    principal, host, operation, permission = entry
                    described.acls.append(
                        AclDescription(principal=principal, host=host, operation=operation, permission_type=permission)
                    )
                    yield
                if described.acls:
                    resources.append(described)
            yield
        return DescribeAclsResponse(error_message="", resources=resources)

    async def create(self, request: CreateAclsRequest, call: Call) -> CreateAclsResponse:
        check(request)
        if not self._is_enabled:
            refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=SENTENCE)
            return CreateAclsResponse(results=[refused] * len(request.creations))
        results = []
        for start in range(0, len(request.creations), OF_A_PORTION):
            results += await self._create([_made(one) for one in request.creations[start : start + OF_A_PORTION]])
        return CreateAclsResponse(results=results)

    async def _create(self, wanted: Sequence[OneAcl | Invalid]) -> list[AclCreationResult]:
        valid = [one for one in wanted if not isinstance(one, Invalid)]
        failed = None
        try:
            full = await self._changes.create(valid) if valid else {}
        except (StorageError, KafkaError) as error:
            failed = not_made(error)
        results = []
        for one in wanted:
            if isinstance(one, Invalid):
                result = AclCreationResult(error_code=one.code, error_message=one.message)
            elif (refusal := failed or full.get(one[0])) is not None:
                result = AclCreationResult(error_code=refusal.code, error_message=refusal.message)
            else:
                result = AclCreationResult(error_message="")
            results.append(result)
        return results

    async def delete(self, request: DeleteAclsRequest, call: Call) -> DeleteAclsResponse:
        filters = [_filter(one) for one in request.filters]
        if not self._is_enabled:
            refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=SENTENCE)
            return DeleteAclsResponse(filter_results=[refused] * len(filters))
        try:
            deleted = await self._changes.delete([one.selects for one in filters])
        except (StorageError, KafkaError) as error:
            refusal = not_made(error)
            failed = DeleteAclsFilterResult(error_code=refusal.code, error_message=refusal.message)
            return DeleteAclsResponse(filter_results=[failed] * len(filters))
        results = []
        for some in deleted:
            result = DeleteAclsFilterResult(error_message=None)
            async for pattern, entry in in_turns(some):
                result.matching_acls.append(_deleted((pattern, entry)))
            results.append(result)
        return DeleteAclsResponse(filter_results=results)


def _filter(one: Any) -> AclSelection:
    """The filter of a request. Raises `ProtocolViolation`."""
    _check(one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type)
    return AclSelection(
        one.resource_type_filter,
        one.resource_name_filter,
        one.pattern_type_filter,
        one.principal_filter,
        one.host_filter,
        one.operation,
        one.permission_type,
    )


def _made(one: Any) -> OneAcl | Invalid:
    return made(
        one.resource_type,
        one.resource_name,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )


def _deleted(acl: OneAcl) -> DeleteAclsMatchingAcl:
    pattern, entry = acl
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def check(request: CreateAclsRequest | DeleteAclsRequest) -> None:
    """Raises `ProtocolViolation`."""
    if isinstance(request, DeleteAclsRequest):
        for each in request.filters:
            _filter(each)
    else:
        for one in request.creations:
            _check(one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)


def _check(*values: int) -> None:
    if UNKNOWN in values:
        raise ProtocolViolation("a request about access rights has a value that means unknown")
