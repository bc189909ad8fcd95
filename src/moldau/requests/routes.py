"""A `Route` for every API and version: how its requests are read, which handler answers, how its replies are packed.

A route is made when it is first asked for, and with it the handler of its API. All messages are read and packed by the
tables of `protocol`. Produce and Fetch have, in addition, a reader and a packer written by hand for the common case;
the packer leaves rare replies to the tables.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from moldau.protocol import codec
from moldau.protocol.apis import (
    CREATE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    FETCH,
    PRODUCE,
    RENEW_DELEGATION_TOKEN,
    SERVED,
    Api,
)
from moldau.protocol.codec import WIDE_BYTES
from moldau.protocol.hot_fetch import FetchReply, is_wide_fetch, pack_fetch, read_fetch
from moldau.protocol.hot_produce import is_wide_produce, pack_produce, read_produce
from moldau.protocol.hot_topics import Wide
from moldau.protocol.schema import ELEMENTS_MAX, is_wide
from moldau.replies import Reply
from moldau.requests.gate import Handler


class Route(NamedTuple):
    """One API in one version.

    A handler's answer of the type `at_once` is packed without further checks. `views_frame`: the request, once read,
    holds views into its frame.
    """

    key: int
    version: int
    flexible: bool
    read: Callable[[memoryview, int, int], Any]
    """Frame, version and position -> message. Raises `ProtocolViolation`, and `Wide` for a wide request."""
    handler: Handler
    at_once: type
    pack: Callable[..., Reply]
    """Version, correlation id, request, response, and milliseconds of throttling if any -> the reply; None if the
    request gets none."""
    views_frame: bool
    copy: Callable[[memoryview], Any]
    """Copies a frame into memory of its own, for `read_wide`."""
    read_wide: Callable[[Any, int, int], Any]
    """Like `read`, for a wide request."""
    is_wide: Callable[[Any], bool]
    """Whether a request is freed, or a response packed, in the executor: true if it has many elements."""


_TOLD_LAST = (CREATE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN, EXPIRE_DELEGATION_TOKEN)


class PackedReply:
    """The answer to a request that another broker has answered: the whole reply, with its size in front. Its first
    field, or the last one of `_TOLD_LAST`, is for how many milliseconds its client is throttled."""

    __slots__ = ("frame",)

    def __init__(self, frame: bytes):
        self.frame = frame

    def throttle_ms(self, api: Api, version: int) -> int:
        at = self._throttle_at(api, version)
        return int.from_bytes(self.frame[at : at + 4], "big")

    def throttled(self, api: Api, version: int, ms: int) -> bytes:
        """The reply with another time."""
        at = self._throttle_at(api, version)
        return b"".join((self.frame[:at], ms.to_bytes(4, "big"), self.frame[at + 4 :]))

    def _throttle_at(self, api: Api, version: int) -> int:
        """Behind the size, the correlation id and, in flexible versions, no tags; or before no tags at the end."""
        tags = api.is_flexible(version)
        return len(self.frame) - 4 - tags if api in _TOLD_LAST else 8 + tags


def new_route(kind: int, handlers: Mapping[int, Handler], apis: Mapping[int, Api] = SERVED) -> Route | None:
    """The route for a key and version in one number, as in the first four bytes of a request; None if the version is
    not supported. `handlers`: by key."""
    key, version = kind >> 16, kind & 0xFFFF
    api = apis.get(key)
    if api is None or not max(api.low, api.lowest) <= version <= api.high:
        return None
    made = handlers[key]
    handler: Handler = made.__call__  # type: ignore[operator]  # a bound method costs less to call than its instance
    route = _by_hand(api, handler) if api in (PRODUCE, FETCH) else _by_table(api, handler)
    if getattr(made, "forwards", False):
        route = route._replace(pack=_packed_or(api, route.pack))
    return route._replace(version=version, flexible=api.is_flexible(version))


def _by_table(api: Api, handler: Handler) -> Route:
    def read(frame: memoryview, version: int, at: int) -> Any:
        if len(frame) - at > WIDE_BYTES:
            raise Wide
        return codec.read_request(api, version, frame, at)

    def pack(version: int, correlation_id: int, request: Any, response: Any, throttle_ms: int = 0) -> Reply:
        if throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        return [codec.write_reply(api, version, correlation_id, response)]

    return Route(
        api.key,
        version=0,
        flexible=False,
        handler=handler,
        at_once=Route,  # the class of its responses is imported when one is needed
        views_frame=False,
        read=read,
        copy=bytes,
        read_wide=lambda frame, version, at: codec.read_request(api, version, frame, at),
        is_wide=is_wide,
        pack=pack,
    )


def _packed_or(api: Api, pack: Callable[..., Reply]) -> Callable[..., Reply]:
    """Packs the responses of a handler that `forwards` some of its requests."""

    def packed(version: int, correlation_id: int, request: Any, response: Any, throttle_ms: int = 0) -> Reply:
        if isinstance(response, PackedReply):
            return [response.throttled(api, version, throttle_ms) if throttle_ms else response.frame]
        return pack(version, correlation_id, request, response, throttle_ms)

    return packed


def _by_hand(api: Api, handler: Handler) -> Route:
    read, is_wide, pack, at_once = (
        (read_produce, is_wide_produce, pack_produce, list)
        if api is PRODUCE
        else (read_fetch, is_wide_fetch, pack_fetch, FetchReply)
    )
    return Route(
        api.key,
        version=0,
        flexible=False,
        handler=handler,
        at_once=at_once,
        views_frame=api is PRODUCE,
        read=read,
        copy=lambda frame: memoryview(bytearray(frame)),
        read_wide=lambda frame, version, at: read(frame, version, at, ELEMENTS_MAX)._replace(is_wide=True),
        is_wide=is_wide,
        pack=pack,
    )
