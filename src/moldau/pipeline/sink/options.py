"""Parses and checks the options of `df.write.format("moldau")`, with the names of Spark's Kafka connector. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.client.producing.producer_settings import ProducerSettings
from moldau.client.security.brokers import settings_in
from moldau.client.settings import read_settings
from moldau.errors import ConfigError
from moldau.pipeline.connecting import CLIENT_CONFIG, about_security, reached
from moldau.pipeline.options import (
    BOOTSTRAP,
    KAFKA,
    OptionError,
    boolean,
    read_bootstrap,
    refuse_unknown,
    without_effect,
)

NAMES = (*BOOTSTRAP, "topic", "transactionalIdPrefix", "txnAppId", "txnVersion", "includeHeaders", CLIENT_CONFIG)
OF_SPARK = ("checkpointLocation", "queryName", "path", "outputMode")
TRANSACTION_TIMEOUT_MS = 600_000
PREFIX = "moldau-spark"
VERSION_MAX = (1 << 63) - 1
INSTEAD = {
    "transactional.id": "each task has its own, which begins with transactionalIdPrefix",
    "acks": "transactions need acks=all",
    "enable.idempotence": "transactions need it",
    "key.serializer": "keys are binary or string",
    "value.serializer": "values are binary or string",
    "interceptor.classes": "records come from Spark as columns",
}
"""Settings of a producer that a task of Spark sets itself, and why."""
AS_SET = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}
"""Values of these settings that say what is set anyway."""


@dataclass(frozen=True)
class SinkOptions:
    """The parsed options of a writer; picklable. `settings` are the producer's, with Kafka's names, except those about
    security, which the brokers carry. A batch write with `app_id` is written once for each `version`."""

    bootstrap_servers: str
    topic: str | None
    prefix: str
    settings: tuple[tuple[str, str], ...]
    app_id: str | None = None
    version: int = 0

    def producer_settings(self, transactional_id: str) -> ProducerSettings:
        given = {
            **about_security(settings_in(self.bootstrap_servers)),
            "bootstrap.servers": str(self.bootstrap_servers),
            "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
            **dict(self.settings),
            "transactional.id": transactional_id,
        }
        return read_settings(ProducerSettings, "The client", (given,), {})


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse the options that Spark passes. Raises `OptionError` for the first wrong one."""
    values = {name.lower(): str(value).strip() for name, value in given.items()}
    for name in OF_SPARK:
        values.pop(name.lower(), None)
    refuse_unknown("sink", values, NAMES)
    settings = {name.removeprefix(KAFKA): value for name, value in values.items() if name.startswith(KAFKA)}
    settings.pop("bootstrap.servers", None)
    for name, why in INSTEAD.items():
        if settings.get(name, "").lower() in AS_SET.get(name, ()):
            del settings[name]
        if name in settings:
            raise OptionError(f"Option {KAFKA}{name} cannot be set for the sink: {why}.")
    if not values.get("topic", "topic") or not values.get("transactionalidprefix", PREFIX):
        raise OptionError("Options topic and transactionalIdPrefix cannot be empty.")
    boolean(values, "includeHeaders", True)
    if "includeheaders" in values:
        without_effect("includeHeaders", "a column headers is written if there is one")
    brokers = reached(read_bootstrap(values, "write to"), values)
    carried = about_security(settings)
    options = SinkOptions(
        bootstrap_servers=brokers,
        topic=values.get("topic"),
        prefix=values.get("transactionalidprefix", PREFIX),
        settings=tuple(sorted((name, text) for name, text in settings.items() if name not in carried)),
        app_id=values.get("txnappid"),
        version=_version(values),
    )
    try:
        options.producer_settings(options.prefix)
    except ConfigError as error:
        raise OptionError(f"Options that begin with kafka. are settings of the client: {error}.") from None
    return options


def _version(values: Mapping[str, str]) -> int:
    """Option txnVersion, which goes with txnAppId."""
    if ("txnappid" in values) != ("txnversion" in values) or values.get("txnappid") == "":
        raise OptionError("Options txnAppId (a name) and txnVersion (a number) go together: they say what was written.")
    version = values.get("txnversion", "0")
    if not version.isdecimal() or int(version) > VERSION_MAX:
        raise OptionError(f"Option txnVersion is a whole number that grows with each write, not {version!r}.")
    return int(version)
