"""Requests that only the controller can answer: any broker takes them, and passes them on to it (KIP-590).

The reply is passed on unchanged, in the client's version. While the controller changes, or cannot be reached, the
request is sent again until its `timeout_ms` has passed; then the answer is REQUEST_TIMED_OUT. While the
store does not answer, nothing can be changed, and the answer comes soon and says so. A connection that breaks leaves
unknown whether the request was carried out, and so the second answer may be TOPIC_ALREADY_EXISTS.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controlling.config_changes import broker_overrides
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state.layout import DEFAULT_BROKER
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.between_brokers.envelope import envelope
from moldau.handlers.table import TABLE, BrokerParts
from moldau.handlers.topics.configs import ConfigResourceType, change_of
from moldau.protocol import apis, codec
from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.messages.envelope import EnvelopeResponse
from moldau.protocol.schema import is_wide
from moldau.requests.access import ALTER_CLUSTER_CONFIGS
from moldau.requests.gate import Handler
from moldau.requests.refusals import refused
from moldau.requests.routes import PackedReply
from moldau.requests.session import Call
from moldau.turns import Turns

FORWARDED = {
    api.key: api
    for api in (
        apis.CREATE_TOPICS,
        apis.DELETE_TOPICS,
        apis.CREATE_PARTITIONS,
        apis.ALTER_CONFIGS,
        apis.INCREMENTAL_ALTER_CONFIGS,
        apis.CREATE_ACLS,
        apis.DELETE_ACLS,
        apis.ALTER_CLIENT_QUOTAS,
        apis.ELECT_LEADERS,
        apis.ALTER_PARTITION_REASSIGNMENTS,
        apis.ALTER_USER_SCRAM_CREDENTIALS,
        apis.CREATE_DELEGATION_TOKEN,
        apis.RENEW_DELEGATION_TOKEN,
        apis.EXPIRE_DELEGATION_TOKEN,
        apis.LIST_PARTITION_REASSIGNMENTS,
        apis.UNREGISTER_BROKER,
    )
}
TIMEOUT_MS = 30_000
"""For requests without a time-out of their own, as Kafka's `controller.socket.timeout.ms`."""
RETRY_S = 0.1
GRACE_S = 2.0
"""How long a request waits for a store that does not answer: it may be back just now."""
LOOK_S = 0.5
"""How often the controller looks whether the store has answered a change meanwhile."""
RETRIED = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.STALE_BROKER_EPOCH,
)


class Forwarding:
    """Sends requests of clients to the controller. `turns` is the broker's queue of wide work. `store_away` says why
    nothing can be changed, "" while the cluster's store answers this broker."""

    def __init__(self, link: ControllerLink, turns: Turns, store_away: Callable[[], str] = lambda: ""):
        self._link = link
        self._turns = turns
        self.store_away = store_away

    async def forward(self, request: Any, call: Call, is_here: Callable[[], bool]) -> Any:
        """The controller's reply as a `PackedReply`, or the response that says why there is none; None if this broker
        has become the controller (`is_here`)."""
        loop = asyncio.get_running_loop()
        timeout_ms = getattr(request, "timeout_ms", TIMEOUT_MS)
        began_s = loop.time()
        end_s = began_s + (timeout_ms if timeout_ms > 0 else TIMEOUT_MS) / 1000
        sent = envelope(await self._frame(request, call), call.session)
        while (left_ms := round((end_s - loop.time()) * 1000)) > 0:
            if is_here():
                return None
            try:
                answer = await self._link.call(apis.ENVELOPE, sent, left_ms, _whole)
            except KafkaError as error:
                if error.code not in RETRIED:
                    return refused(request, call, error.code)
            else:
                if not answer.error_code:
                    return PackedReply(_with_size(answer.response_data or b""))
                if answer.error_code != ErrorCode.NOT_CONTROLLER:
                    return refused(request, call, answer.error_code)
            if loop.time() >= began_s + GRACE_S and (why := self.store_away()):
                return refused(request, call, ErrorCode.REQUEST_TIMED_OUT, why)
            await asyncio.sleep(min(RETRY_S, max(end_s - loop.time(), 0)))
        return refused(request, call, ErrorCode.REQUEST_TIMED_OUT)

    async def _frame(self, request: Any, call: Call) -> bytes:
        """The request as the client has sent it."""
        api = FORWARDED[call.key]

        def written() -> bytes:
            return codec.write_request(api, call.version, call.correlation_id, call.client_id or "", request)[4:]

        if not is_wide(request):
            return written()
        async with self._turns:
            return await self._turns.off_loop(written)


class ControllersWork:
    """The handler of an API that only the controller can answer. `local` answers if this broker `is_controller`. What
    `local` refuses `early`, because of how the client is connected, is not passed on."""

    forwards = True

    def __init__(self, local: Handler, is_controller: Callable[[], bool], forwarding: Forwarding, turns: Turns):
        self._local = local
        self._is_controller = is_controller
        self._forwarding = forwarding
        self._turns = turns

    def __call__(self, request: Any, call: Call) -> Any:
        early = getattr(self._local, "early", None)
        if early is not None and (refused := early(request, call)) is not None:
            return refused
        if not self._is_controller():
            return self._elsewhere(request, call)
        answer = self._local(request, call)
        return self._followed(request, call, answer) if isinstance(answer, Awaitable) else answer

    async def _followed(self, request: Any, call: Call, answer: Awaitable[Any]) -> Any:
        """The local answer, unless this broker was replaced as the controller before it had made the change, or the
        store does not answer: then the change may still be made later."""
        answering, loop = asyncio.ensure_future(answer), asyncio.get_running_loop()
        began_s = loop.time()
        try:
            while not (await asyncio.wait([answering], timeout=LOOK_S))[0]:
                if loop.time() >= began_s + GRACE_S and (why := self._forwarding.store_away()):
                    return refused(request, call, ErrorCode.REQUEST_TIMED_OUT, why)
        finally:
            answering.cancel()  # as the connection would: changes that have begun are completed
        response = await self._turns.run(answering.result())
        if not _is_refused_by_another(response):
            return response
        return await self._elsewhere(request, call)

    async def _elsewhere(self, request: Any, call: Call) -> Any:
        """Raises `KafkaError(NOT_CONTROLLER)` for a request that was forwarded here."""
        if call.session.is_forwarded:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        response = await self._forwarding.forward(request, call, self._is_controller)
        if response is not None:
            return response
        return await self._here(request, call)

    async def _here(self, request: Any, call: Call) -> Any:
        answer = self._local(request, call)
        return await self._turns.run(await answer if isinstance(answer, Awaitable) else answer)


class AlterationsWork(ControllersWork):
    """IncrementalAlterConfigs and AlterConfigs: the levels of this broker's own loggers are changed here, everything
    else by the controller. A change that this broker could not run with is refused here: only this broker knows its
    file. The controller refuses a client that may not alter settings of brokers: it does not learn from here whether
    this broker could run with them. `shown` is what this broker serves by."""

    def __init__(
        self,
        local: Handler,
        is_controller: Callable[[], bool],
        forwarding: Forwarding,
        turns: Turns,
        shown: MetadataCache,
    ):
        super().__init__(local, is_controller, forwarding, turns)
        self._shown = shown

    def __call__(self, request: Any, call: Call) -> Any:
        if self._is_controller() or call.session.is_forwarded:
            return super().__call__(request, call)
        of_brokers = [
            one
            for one in request.resources
            if one.resource_type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
        ]
        levels = [one for one in of_brokers if one.resource_type == ConfigResourceType.BROKER_LOGGER]
        refused = {}
        if len(of_brokers) > len(levels) and call.may(ALTER_CLUSTER_CONFIGS, logged=False):
            refused = self._refused([one for one in of_brokers if one.resource_type == ConfigResourceType.BROKER])
        return self._parted(request, call, levels, refused) if levels or refused else super().__call__(request, call)

    def _refused(self, resources: Sequence[Any]) -> dict[tuple[int, str], Refusal]:
        """The changes of this broker, or of all, that it refuses. The controller refuses what is named twice."""
        own = str(self._shown.broker_id)
        refused = {}
        for name, broker in ((own, own), ("", DEFAULT_BROKER)):
            named = [one for one in resources if one.resource_name == name]
            outcome = broker_overrides(self._shown, broker, change_of(named[0])) if len(named) == 1 else None
            if isinstance(outcome, Refusal):
                refused[int(ConfigResourceType.BROKER), name] = outcome
        return refused

    async def _parted(
        self, request: Any, call: Call, levels: Sequence[Any], refused: Mapping[tuple[int, str], Refusal]
    ) -> Any:
        response = await self._here(_only(request, levels), call)
        named = {(one.resource_type, one.resource_name): one for one in response.responses}
        for resource, (code, message) in refused.items():
            named[resource] = _RESULTS[call.key](
                error_code=code, error_message=message, resource_type=resource[0], resource_name=resource[1]
            )
        others = [one for one in request.resources if (one.resource_type, one.resource_name) not in named]
        if others:
            elsewhere = await self._elsewhere(_only(request, others), call)
            if isinstance(elsewhere, PackedReply):
                elsewhere = codec.read_reply(FORWARDED[call.key], call.version, elsewhere.frame[4:])
            named |= {(one.resource_type, one.resource_name): one for one in elsewhere.responses}
        asked = dict.fromkeys((one.resource_type, one.resource_name) for one in request.resources)
        response.responses = [named[resource] for resource in asked if resource in named]
        return response


class AclsWork(ControllersWork):
    """CreateAcls and DeleteAcls: a request that Kafka does not take closes its connection here, too."""

    def __call__(self, request: Any, call: Call) -> Any:
        from moldau.handlers.security.acls import check  # imported with the handler itself, which is made before

        check(request)
        return super().__call__(request, call)


_RESULTS: Mapping[int, Callable[..., Any]] = {
    apis.INCREMENTAL_ALTER_CONFIGS.key: incremental_alter_configs.AlterConfigsResourceResponse,
    apis.ALTER_CONFIGS.key: alter_configs.AlterConfigsResourceResponse,
}


def _only(request: Any, resources: Sequence[Any]) -> Any:
    return type(request)(resources=list(resources), validate_only=request.validate_only)


class ControllersHandlers:
    """The handlers of the APIs that only the controller can answer. `parts` are those of this broker as the controller:
    with the image that the controller decides on. `shown` is what the broker serves by."""

    def __init__(
        self,
        parts: BrokerParts,
        is_controller: Callable[[], bool],
        forwarding: Forwarding,
        turns: Turns,
        shown: MetadataCache,
    ):
        self._parts = parts
        self._shown = shown
        self._is_controller = is_controller
        self._forwarding = forwarding
        self._turns = turns

    def __call__(self, api: apis.Api) -> Handler | None:
        """See `Handlers`."""
        if api.key not in FORWARDED:
            return None
        local = TABLE[api].make(self._parts)
        if api in (apis.CREATE_ACLS, apis.DELETE_ACLS):
            return AclsWork(local, self._is_controller, self._forwarding, self._turns)
        if api.key not in _RESULTS:
            return ControllersWork(local, self._is_controller, self._forwarding, self._turns)
        return AlterationsWork(local, self._is_controller, self._forwarding, self._turns, self._shown)


def _whole(answer: EnvelopeResponse) -> EnvelopeResponse:
    return answer


def _with_size(reply: bytes) -> bytes:
    return len(reply).to_bytes(4, "big") + reply


def _is_refused_by_another(response: Any) -> bool:
    """Whether an element of the response, of which each is a topic or a resource, says NOT_CONTROLLER."""
    arrays = [value for name in response.__slots__ if isinstance(value := getattr(response, name), list)]
    return any(getattr(one, "error_code", 0) == ErrorCode.NOT_CONTROLLER for elements in arrays for one in elements)
