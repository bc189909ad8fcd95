"""The settings of many topics, asked in requests of up to `ASKED_AT_ONCE` topics each: an answer for one has some 40
settings, so a mirror of 10,000 topics asks a hundred times instead of ten thousand.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from moldau.client.failures import error_of, missing, sentence
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.apis import DESCRIBE_CONFIGS
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)

ASKED_AT_ONCE: Final = 100
TOPIC: Final = 2
"""Kafka's code for a topic's settings, among those of other resources."""
OWN: Final = 1
"""Kafka's code for a value that was set for the topic itself."""

MadeSettings: TypeAlias = dict[str, str]
"""The settings that were made for a topic."""


async def settings_of(router: Router, topics: Iterable[str]) -> dict[str, MadeSettings | KafkaError]:
    """The settings of each topic, or why the cluster does not tell them: it was deleted, or the right is missing.
    Raises `KafkaError` if the cluster does not answer."""
    names = [*dict.fromkeys(topics)]
    found: dict[str, MadeSettings | KafkaError] = {}
    for at in range(0, len(names), ASKED_AT_ONCE):
        resources = [
            DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
            for name in names[at : at + ASKED_AT_ONCE]
        ]
        request = DescribeConfigsRequest(resources=resources)

        async def ask(request: DescribeConfigsRequest = request) -> list[DescribeConfigsResult]:
            link = await router.any()
            reply = await link.call(DESCRIBE_CONFIGS, request, router.request_timeout_ms)
            return list(reply.results)

        for one in await router.retrying(ask):
            found[one.resource_name] = _settings(one)
    return {name: found[name] if name in found else missing(f"topic {name}") for name in names}


def _settings(one: DescribeConfigsResult) -> MadeSettings | KafkaError:
    about, error = f"topic {one.resource_name}", error_of(one.error_code)
    if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return missing(about)
    if error:
        return KafkaError(error, f"{about}: {one.error_message or sentence(error)}")
    return {entry.name: entry.value for entry in one.configs if entry.config_source == OWN and entry.value is not None}


def untold(name: str, of_source: MadeSettings | KafkaError, of_target: MadeSettings | KafkaError | None) -> str:
    """Why the settings of a topic in one of the clusters are not known: a sentence, empty if they are."""
    for cluster, found in (("source", of_source), ("target", of_target)):
        if isinstance(found, KafkaError):
            return f"the {cluster} does not tell the settings of {name}: {found}"
    return ""
