"""Requests of one client to the coordinator of one group, whichever broker that is at the moment."""

from collections.abc import Callable
from typing import Any

from moldau.client.failures import error_of, sentence
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.link import Link
from moldau.protocol.apis import Api

LOST_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
"""After one of these errors the coordinator is looked up again."""


class _Passing(KafkaError):
    """An error that is gone once the member has heard from its group."""

    @property
    def retriable(self) -> bool:
        return True


class GroupLink:
    """Finds the coordinator of a group, keeps a connection to it, and sends requests there.

    A broker answers the requests of a connection in order. A JoinGroup is answered when the rebalance ends, so what
    must not wait for that needs a link with another `purpose`.
    """

    def __init__(self, router: Router, group_id: str, purpose: str = "group"):
        self.router = router
        self.group_id = group_id
        self._purpose = f"{purpose} {group_id}"
        self._coordinator: int | None = None

    async def connected(self) -> Link:
        """The connection to the coordinator. Raises `KafkaError`."""
        if self._coordinator is None:
            self._coordinator = await self.router.coordinator(self.group_id)
        return await self.router.broker(self._coordinator, self._purpose)

    async def call(self, api: Api, request: Any, *, timeout_ms: int | None = None) -> Any:
        """Send one request to the coordinator. Raises `KafkaError` if it does not answer."""
        try:
            link = await self.connected()
            return await link.call(api, request, timeout_ms or self.router.request_timeout_ms)
        except KafkaError as failure:
            if failure.retriable:
                self._coordinator = None
            raise

    async def retrying(
        self,
        api: Api,
        request: Callable[[], Any],
        errors: Callable[[Any], list[int]],
        also: frozenset[ErrorCode] = frozenset(),
    ) -> Any:
        """Send what `request` returns to the coordinator, and retry while `errors` of the reply has a retriable error
        or one of `also`."""

        async def attempt() -> Any:
            reply = await self.call(api, request())
            for code in errors(reply):
                error = error_of(code)
                if error.retriable or error in also:
                    self.note(error)
                    kind = KafkaError if error.retriable else _Passing
                    raise kind(error, f"group {self.group_id}: {sentence(error)}")
            return reply

        try:
            return await self.router.retrying(attempt)
        except _Passing as last:
            raise KafkaError(last.code, last.message) from None

    def note(self, error: ErrorCode) -> None:
        """Look the coordinator up again if this error says that it has moved or died."""
        if error in LOST_COORDINATOR:
            self._coordinator = None
