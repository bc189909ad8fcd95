"""DescribeAcls, CreateAcls and DeleteAcls (keys 29, 30, 31; versions 1 to 3): refused, as no access rights exist here.

This broker has no authorizer, and answers as Kafka does without one: SECURITY_DISABLED, once for a description and once
for each creation or filter. A request with a value that means "unknown" (0) closes its connection, as by Kafka.
"""

from moldau.errors import ErrorCode, ProtocolViolation
from moldau.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from moldau.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from moldau.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from moldau.requests.session import Call

UNKNOWN = 0
"""Kafka's number of a resource type, pattern type, operation or permission that it does not know."""
SENTENCE = "this broker has no access rights (ACLs): no authorizer is configured"


def describe_acls(request: DescribeAclsRequest, call: Call) -> DescribeAclsResponse:
    _check(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=SENTENCE)


def create_acls(request: CreateAclsRequest, call: Call) -> CreateAclsResponse:
    for one in request.creations:
        _check(one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=SENTENCE)
    return CreateAclsResponse(results=[refused] * len(request.creations))


def delete_acls(request: DeleteAclsRequest, call: Call) -> DeleteAclsResponse:
    for one in request.filters:
        _check(one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type)
    refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=SENTENCE)
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))


def _check(*values: int) -> None:
    if UNKNOWN in values:
        raise ProtocolViolation("a request about access rights has a value that means unknown")
