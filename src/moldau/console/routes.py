"""Which path is which page. `{}` stands for one piece of a path, whatever is in it."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from moldau.console.context import ConsoleContext
from moldau.console.pages import (
    access,
    brokers,
    group,
    group_topic,
    groups,
    login,
    messages,
    mirrors,
    moves,
    overview,
    produce,
    pulses,
    schemas,
    topic,
    topics,
    transactions,
)
from moldau.console.web.answers import Answer
from moldau.console.web.paths import from_path
from moldau.console.web.refusing import NOT_FOUND, PageRefusal
from moldau.console.web.requests import PageRequest

METHOD_NOT_ALLOWED = 405
ANY = "{}"
Page = Callable[..., Awaitable[Answer]]


class PageRoute(NamedTuple):
    """`is_open`: also for browsers that are not logged in, and for a POST of a read-only console."""

    method: str
    pattern: str
    page: Page
    is_open: bool = False


ROUTES = (
    PageRoute("GET", "/login", login.login_page, is_open=True),
    PageRoute("POST", "/login", login.log_in, is_open=True),
    PageRoute("POST", "/logout", login.log_out, is_open=True),
    PageRoute("GET", "/", overview.overview),
    PageRoute("GET", "/health", overview.health),
    PageRoute("GET", "/pulse", pulses.brokers_pulse),
    PageRoute("GET", "/pulse/throughput", pulses.throughput_pulse),
    PageRoute("GET", "/pulse/requests", pulses.request_times_pulse),
    PageRoute("GET", "/request-times", pulses.request_times),
    PageRoute("GET", "/brokers", brokers.brokers),
    PageRoute("GET", "/brokers/{}", brokers.broker),
    PageRoute("GET", "/brokers/{}/folders", brokers.log_folders),
    PageRoute("POST", "/brokers/{}/settings", brokers.change_setting),
    PageRoute("GET", "/topics", topics.topics),
    PageRoute("GET", "/topic-rows", topics.topic_rows),
    PageRoute("GET", "/new-topic", topics.new_topic),
    PageRoute("POST", "/new-topic", topics.create_topic),
    PageRoute("GET", "/topics/{}", topic.partitions),
    PageRoute("GET", "/topics/{}/pulse", pulses.topic_pulse),
    PageRoute("GET", "/topics/{}/messages", messages.messages),
    PageRoute("GET", "/topics/{}/search", messages.search),
    PageRoute("GET", "/topics/{}/tail", messages.tail),
    PageRoute("GET", "/topics/{}/export", messages.export),
    PageRoute("GET", "/topics/{}/records/{}/{}", messages.record),
    PageRoute("GET", "/topics/{}/produce", produce.produce_page),
    PageRoute("POST", "/topics/{}/produce", produce.produce),
    PageRoute("GET", "/topics/{}/groups", topic.topic_groups),
    PageRoute("GET", "/topics/{}/settings", topic.topic_settings),
    PageRoute("POST", "/topics/{}/settings", topic.change_setting),
    PageRoute("POST", "/topics/{}/partitions", topic.add_partitions),
    PageRoute("POST", "/topics/{}/delete", topic.delete_topic),
    PageRoute("GET", "/groups", groups.groups),
    PageRoute("GET", "/group-rows", groups.group_rows),
    PageRoute("GET", "/groups/{}", group.group),
    PageRoute("POST", "/groups/{}/reset", group.reset),
    PageRoute("GET", "/groups/{}/delete-offsets", group_topic.offsets),
    PageRoute("POST", "/groups/{}/delete-offsets", group_topic.delete_offsets),
    PageRoute("POST", "/groups/{}/delete", group.delete_group),
    PageRoute("GET", "/transactions", transactions.transactions),
    PageRoute("GET", "/transactions/{}", transactions.transaction),
    PageRoute("GET", "/hanging", transactions.hanging),
    PageRoute("POST", "/hanging/abort", transactions.abort_hanging),
    PageRoute("GET", "/acls", access.acls),
    PageRoute("POST", "/acls", access.add_acl),
    PageRoute("POST", "/acls/remove", access.remove_acl),
    PageRoute("GET", "/quotas", access.quotas),
    PageRoute("POST", "/quotas", access.set_quota),
    PageRoute("GET", "/schemas", schemas.subjects),
    PageRoute("GET", "/schemas/{}", schemas.subject),
    PageRoute("GET", "/schemas/{}/compare", schemas.compare),
    PageRoute("GET", "/mirrors", mirrors.mirrors),
    PageRoute("GET", "/moves", moves.moves),
    PageRoute("POST", "/moves/cancel", moves.cancel_move),
)
_PATTERNS = [(route, tuple(piece for piece in route.pattern.split("/") if piece)) for route in ROUTES]


class FoundPage(NamedTuple):
    """A page and the pieces of the path that it is about."""

    route: PageRoute
    names: tuple[str, ...]

    def call(self, console: ConsoleContext, request: PageRequest) -> Any:
        return partial(self.route.page, console, request)(*self.names)


def find(method: str, parts: tuple[str, ...]) -> FoundPage:
    """Raises `PageRefusal` if no page has this path, or none for this method."""
    others = False
    for route, pattern in _PATTERNS:
        if len(pattern) == len(parts) and all(a in (ANY, b) for a, b in zip(pattern, parts, strict=True)):
            if route.method == method:
                return FoundPage(route, tuple(from_path(b) for a, b in zip(pattern, parts, strict=True) if a == ANY))
            others = True
    if others:
        raise PageRefusal(METHOD_NOT_ALLOWED, f"this page does not take {method}")
    raise PageRefusal(NOT_FOUND, "there is no such page")
