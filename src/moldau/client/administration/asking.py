"""Shared by the parts of an admin client: the choice of the broker, the retries, and the outcome of each item.

A request about several topics or groups has an outcome for each: `Outcomes` maps a name to None, or to the error that
the broker answered for it. Messages are taken from `Api.messages`, which imports them when they are first used: a
command or script needs few of the fifty.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from moldau.client.failures import check, error_of, missing, sentence, unasked
from moldau.client.routing import Router
from moldau.client.shown import some
from moldau.errors import ChangeTimedOut, ConfigError, ErrorCode, KafkaError, UnknownTopicOrPartition
from moldau.names import TopicPartition
from moldau.peers.link import Link
from moldau.protocol.apis import Api

LOST_REPLY = " (the reply to an earlier attempt was lost: this call may have done it)"
Outcomes = dict[str, KafkaError | None]
"""Name -> None, or the error of this item."""
T = TypeVar("T")


class AdminPart:
    """Base of the parts of an admin client."""

    _router: Router
    _timeout_ms: int

    async def _controller(self) -> Link:
        await self._router.refresh([])
        controller = self._router.view.controller_id
        known = controller in self._router.view.brokers
        return await (self._router.broker(controller) if known else self._router.any())

    async def _ask(self, api: Api, request: Any, about: str, broker_id: int | None = None) -> Any:
        """Send a request to a broker, to any by default. Raises `KafkaError` if the reply as a whole has an error;
        BROKER_NOT_AVAILABLE as soon as the cluster does not have that broker any more."""
        attempts = 0

        async def attempt() -> Any:
            nonlocal attempts
            attempts += 1
            link = await (self._router.any() if broker_id is None else self._broker(broker_id, again=attempts > 1))
            reply = await link.call(api, request, self._timeout_ms)
            check_answer(getattr(reply, "error_code", 0), about, getattr(reply, "error_message", None))
            return reply

        return await self._router.retrying(attempt)

    async def _ask_controller(self, api: Api, request: Any, about: str) -> Any:
        """Send a request to the controller. Raises `KafkaError` if the reply as a whole has an error."""

        async def attempt() -> Any:
            reply = await (await self._controller()).call(api, request, self._timeout_ms * 2)
            check_answer(reply.error_code, about, getattr(reply, "error_message", None))
            return reply

        return await self._router.retrying(attempt)

    async def _broker(self, broker_id: int, *, again: bool = False) -> Link:
        """The link to that broker. `again`: it was asked before, and may have left since."""
        if again or broker_id not in self._router.view.brokers or self._router.is_outdated:
            await self._router.refresh([])
            if again and broker_id not in self._router.view.brokers:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not up")
        return await self._router.broker(broker_id)

    async def _brokers(self) -> list[int]:
        """The ids of all brokers that are up."""
        await self._router.retrying(lambda: self._router.refresh([]))
        return sorted(self._router.view.brokers)

    async def _each(
        self,
        api: Api,
        names: Iterable[str],
        request: Callable[[list[str]], Any],
        results: Callable[[Any], Iterable[tuple[str, Any]]],
        kind: str = "topic",
    ) -> Outcomes:
        """Ask the controller about several items, and again about those that fail with a retriable error. `results`
        returns the name and the result of each item in a reply. If a reply was lost, the errors of the next one say so:
        what they complain about may be what this call has done."""
        order = [*dict.fromkeys(names)]
        wanted = [*order]
        outcomes: Outcomes = {}
        lost = ""

        async def attempt() -> None:
            nonlocal lost
            failed: KafkaError | None = None
            link = await self._controller()
            try:
                reply = await link.call(api, request([*wanted]), self._timeout_ms * 2)
            except KafkaError:
                lost = LOST_REPLY
                raise
            for name, result in results(reply):
                if name not in wanted:
                    raise unasked(f"has a {kind} that was not asked for: {name!r}")
                error = failure(result, f"{kind} {name}", lost)
                if error is not None and error.retriable:
                    failed = error
                else:
                    wanted.remove(name)
                outcomes[name] = error
            if len(outcomes) < len(order):
                raise unasked(f"leaves out {kind} {some(name for name in order if name not in outcomes)}")
            if failed is not None:
                raise failed

        if wanted:
            try:
                await self._router.retrying(attempt)
            except KafkaError:
                if len(outcomes) < len(order):
                    raise
        return {name: outcomes[name] for name in order}

    async def _ask_coordinator(
        self,
        group_id: str,
        api: Api,
        request: Any,
        error: Callable[[Any], int],
        message: Callable[[Any], str | None] = lambda reply: None,
    ) -> Any:
        """Ask the coordinator of a group; `error` and `message` return those of the reply. Raises `KafkaError`."""

        async def attempt() -> Any:
            link = await self._router.broker(await self._router.coordinator(group_id))
            reply = await link.call(api, request, self._timeout_ms)
            try:
                code, said = error(reply), message(reply)
            except IndexError:
                raise unasked(f"leaves out group {group_id}") from None
            check(code, f"group {group_id}", said)
            return reply

        return await self._router.retrying(attempt)

    async def _refresh(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask for the metadata of the topics of these partitions. Raises `KafkaError`."""
        topics = {tp.topic for tp in partitions}
        await self._router.retrying(lambda: self._router.refresh(topics))

    async def _by_leader(self, partitions: Mapping[TopicPartition, T]) -> dict[int, dict[TopicPartition, T]]:
        """The partitions by the broker that leads them. Call `_refresh` first; only topics that have turned out to be
        stale since are asked for again. Raises `KafkaError`; for a topic or partition that does not exist it cannot be
        retried."""
        view, by_leader = self._router.view, dict[int, dict[TopicPartition, T]]()
        if stale := {tp.topic for tp in partitions if tp.topic not in view.topics}:
            await self._router.refresh(stale)
        for tp, wanted in partitions.items():
            leader = view.leader(tp)
            if leader is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise missing(f"partition {tp.partition} of topic {tp.topic}")
            by_leader.setdefault(await self._router.leader(tp), {})[tp] = wanted
        return by_leader


async def leader_of(router: Router, tp: TopicPartition) -> int:
    """The id of the broker that leads a partition. Raises `KafkaError`, `NoSuchPartition` if new metadata do not have
    it."""
    try:
        return await router.leader(tp)
    except UnknownTopicOrPartition:
        raise missing(f"partition {tp.partition} of topic {tp.topic}") from None


def check_answer(code: int, about: str, message: str | None = None) -> None:
    """As `check`, for an answer to an administrator. Raises `ChangeTimedOut` instead of `RequestTimedOut`."""
    if code == ErrorCode.REQUEST_TIMED_OUT:
        raise ChangeTimedOut(f"{about}: {message or sentence(ErrorCode.REQUEST_TIMED_OUT)}")
    check(code, about, message)


def failure(result: Any, about: str, more: str = "") -> KafkaError | None:
    """The error in the result of one item, None if it has none. `more` is put behind its text."""
    code = error_of(result.error_code)
    if code is ErrorCode.NONE:
        return None
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return missing(about, more)
    said = (getattr(result, "error_message", None) or sentence(code)) + more
    # Brokers of ours name it themselves.
    text = said if said.startswith(f"{about} ") else f"{about}: {said}"
    return ChangeTimedOut(text) if code is ErrorCode.REQUEST_TIMED_OUT else KafkaError(code, text)


def only(outcomes: Outcomes) -> None:
    """Raise the error of the one item."""
    [error] = outcomes.values()
    if error is not None:
        raise error


def setting_text(name: str, value: object) -> str:
    """The value of the setting `name` as Kafka's text: True is `true`, a list is separated by commas. Raises
    `ConfigError` for what is neither text nor a number, a truth value, a path, or a list of them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(setting_text(name, one) for one in value)
    is_plain = any(hasattr(type(value), way) for way in ("__index__", "__float__", "__fspath__"))
    if not isinstance(value, str) and not is_plain:
        raise ConfigError(
            f"{name} takes text, a number, True or False, a list of them, or None to reset it, not"
            f" {type(value).__name__}"
        )
    return str(value)


def texts_of(settings: Mapping[str, object]) -> dict[str, str | None]:
    """Settings by name, as Kafka's text; None stays None. Raises `ConfigError`."""
    return {name: None if value is None else setting_text(name, value) for name, value in settings.items()}
