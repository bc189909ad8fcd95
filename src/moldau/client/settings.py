"""How settings are given to a client: keyword arguments with Kafka's names in Python's form, or a mapping in Kafka's.

    Producer("localhost:9092", linger_ms=20)
    Producer({"bootstrap.servers": "localhost:9092", "linger.ms": 20})

A class of settings is a dataclass made with `settings`: one line for each setting, with type, default, bounds and a
sentence. `configured` gives these fields to a client's `__init__` as its signature. A wrong setting is a `ConfigError`
of one sentence; text is converted only in a mapping, because values of property files are text. A mapping may be the
file of a whole program: what it has for other clients has no effect (`foreign_names`).
"""

import dataclasses
import functools
import inspect
import logging
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar, Union, cast

from moldau.client.foreign_names import judged
from moldau.client.security.brokers import Brokers, settings_in
from moldau.client.security.security_settings import PLAINTEXT, SecuritySettings
from moldau.client.values import parameters_of_fields
from moldau.client.values import setting as setting
from moldau.client.values import settings as settings
from moldau.errors import ConfigError
from moldau.names import guess
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)

INT32_MAX, INT64_MAX = 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF
BOOTSTRAP_VARIABLE, BOOTSTRAP_DEFAULT = "MOLDAU_BOOTSTRAP_SERVER", "localhost:9092"
Servers = Union[str, Iterable[str], Mapping[str, object], "ClientSettings", None]
"""`host:port,host:port`, a list of them, a mapping of settings in Kafka's names, or settings that were read before."""

P = ParamSpec("P")


@settings
class ClientSettings(SecuritySettings):
    """What every client can be told."""

    owner: ClassVar[str] = "a client"
    """Which client it is, in the words of `foreign_names.OWNERS`."""

    bootstrap_servers: Servers = setting(
        default=None,
        kw_only=False,
        about=f"The brokers to connect to first; by default {BOOTSTRAP_VARIABLE}, else {BOOTSTRAP_DEFAULT}.",
    )
    _: KW_ONLY
    client_id: str = setting(default="moldau", about="The name of this client in the broker's logs and quotas.")
    request_timeout_ms: int = setting(default=30_000, low=1, about="Wait this long for the answer to a request.")
    default_api_timeout_ms: int = setting(
        default=60_000, low=1, about="Retry this long before a call fails that takes no time-out of its own."
    )
    metadata_recovery_strategy: str = setting(
        default="rebootstrap",
        about="`rebootstrap`: ask bootstrap_servers again when no known broker answers, or one says that the client"
        " must start again. `none`: ask them only until the cluster is known.",
    )
    metadata_cluster_check_enable: bool = setting(
        default=True,
        about="Name broker and cluster when connecting to a broker of Kafka 4.4 or newer, which refuses what is"
        " meant for another. Not with metadata_recovery_strategy `none`.",
    )
    metadata_max_age_ms: int = setting(
        default=300_000, low=0, about="Ask for metadata again when it is this old: for new partitions, and new topics."
    )
    retry_backoff_ms: int = setting(default=100, low=0, about="The wait before the first retry; it doubles each time.")
    retry_backoff_max_ms: int = setting(default=1_000, low=0, about="The longest wait before a retry.")
    socket_connection_setup_timeout_ms: int = setting(
        default=10_000, low=1, about="Wait this long for a connection to a broker."
    )
    runtime: Runtime | None = setting(
        default=None, internal=True, about="Clock and chance; simulations hand in their own."
    )

    @property
    def brokers_text(self) -> str:
        """Where the client finds its brokers, as text."""
        return str(self.bootstrap_servers)

    def check(self) -> None:
        """Raise `ConfigError` for a combination of settings that is not allowed."""
        one_of("metadata_recovery_strategy", self.metadata_recovery_strategy, ("rebootstrap", "none"))
        self.check_security()


SomeSettings = TypeVar("SomeSettings", bound=ClientSettings)


def configured(
    settings_class: Callable[P, SomeSettings],
) -> Callable[[Callable[[Any, SomeSettings], None]], Callable[Concatenate[Any, P], None]]:
    """Decorator of a client's `__init__(self, settings)`: callers give the settings as arguments."""

    def decorate(init: Callable[[Any, SomeSettings], None]) -> Callable[Concatenate[Any, P], None]:
        @functools.wraps(init)
        def wrapped(self: Any, *arguments: Any, **named: Any) -> None:
            init(self, read_settings(settings_class, type(self).__name__, arguments, named))  # type: ignore[arg-type]

        wrapped.__doc__ = described(settings_class)
        own = parameters_of_fields(settings_class)
        me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [me, *own], return_annotation=None, __validate_parameters__=False
        )
        return cast(Callable[Concatenate[Any, P], None], wrapped)

    return decorate


def read_settings(
    settings_class: type[SomeSettings], client: str, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> SomeSettings:
    """The settings in these arguments of a client's constructor, checked. Raises `ConfigError`."""
    if len(arguments) == 1 and isinstance(arguments[0], settings_class) and not named:
        return arguments[0]
    if len(arguments) > 1:
        raise ConfigError(f"{client} takes one argument without a name, the bootstrap servers or a mapping of settings")
    fields = {field.name: field for field in dataclasses.fields(settings_class)}
    given = _canonical(named, settings_class, client)
    if arguments and "bootstrap_servers" in given:
        raise ConfigError(f"{client} was given bootstrap_servers twice")
    servers = arguments[0] if arguments else given.pop("bootstrap_servers", None)
    if isinstance(servers, str) and given.get("group_id") and ":" not in servers and servers != "localhost":
        raise ConfigError(
            f"the first argument of {client} is the broker, as in {client}('localhost:9092', group_id=...), and"
            f" {servers!r} has no port; if it is a topic, call subscribe({servers!r})"
        )
    if isinstance(servers, Brokers):
        given = {**_from_mapping(settings_in(servers), client, settings_class), **given}
        given.pop("bootstrap_servers", None)
    if isinstance(servers, Mapping):
        mapped = _from_mapping(servers, client, settings_class)
        twice = sorted(mapped.keys() & given.keys())
        if twice:
            raise ConfigError(f"{twice[0]} is given both in the mapping and as an argument")
        given |= mapped
        servers = given.pop("bootstrap_servers", None)
    hints = _hints(settings_class)
    for name, value in given.items():
        if name not in fields:
            plaintext = _text(given.get("security_protocol")) == PLAINTEXT
            judgement = judged(name, value, settings_class.owner, plaintext=plaintext)
            known = [one for one, field in fields.items() if not field.metadata["internal"]]
            raise ConfigError(
                f"{client} has no setting {name}{f': {judgement.answer}' if judgement else guess(name, known)}"
            )
        _check(name, value, hints[name], fields[name].metadata)
    if servers is not None and given.get("zookeeper_connect") is not None:
        raise ConfigError("both bootstrap_servers and zookeeper_connect name the brokers: leave one of them out")
    if servers is None:
        servers = os.environ.get(BOOTSTRAP_VARIABLE) or BOOTSTRAP_DEFAULT
    if not isinstance(servers, str):
        servers = _server_list(servers)
    made = settings_class(servers, **given)
    if "security_protocol" not in given:
        made.refuse_unprotected()
    made.check()
    return made


_known_hints: dict[Any, dict[str, Any]] = {}


def _hints(settings_class: Any) -> dict[str, Any]:
    """The type of each setting."""
    if settings_class not in _known_hints:
        _known_hints[settings_class] = typing.get_type_hints(settings_class)
    return _known_hints[settings_class]


def _canonical(named: Mapping[str, Any], settings_class: Any, client: str) -> dict[str, Any]:
    """The same under our names, for the names of other clients that are taken as they are."""
    aliases = _aliases(settings_class)
    given: dict[str, Any] = {}
    for name, value in named.items():
        ours = aliases.get(name, name)
        if ours in given:
            raise ConfigError(f"{client} was given {ours} twice, also as {name}")
        given[ours] = value
    return given


def _aliases(settings_class: Any) -> dict[str, str]:
    """A name that another client has -> ours."""
    return {alias: field.name for field in dataclasses.fields(settings_class) for alias in field.metadata["aliases"]}


def kafka_name(name: str) -> str:
    """The setting's name in Kafka's form: `linger_ms` is `linger.ms`."""
    return name.replace("_", ".")


def described(settings_class: Any) -> str:
    """A line for each setting: its name, Kafka's name if that is another one, the default, what it means."""
    lines = []
    about_security = {field.name for field in dataclasses.fields(SecuritySettings)}
    for field in sorted(dataclasses.fields(settings_class), key=lambda field: field.name in about_security):
        kafka = kafka_name(field.name)
        also = "" if kafka == field.name or field.metadata["internal"] else f" ({kafka})"
        lines.append(f"{field.name}{also}, default {field.default!r}: {field.metadata['about']}")
    return "\n".join(["Settings, with Kafka's names in brackets:", "", *lines])


def one_of(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise `ConfigError` unless the value is one of the choices."""
    allowed = list(choices)
    if value not in allowed:
        raise ConfigError(f"{name}={value!r} is not one of {', '.join(str(choice) for choice in allowed)}")


def _server_list(servers: object) -> str:
    if not isinstance(servers, Iterable) or isinstance(servers, bytes):
        raise ConfigError(f"bootstrap_servers={servers!r} is not text, a list of host:port, or a mapping of settings")
    texts = list(servers)
    if not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"bootstrap_servers={texts!r} is not a list of host:port")
    return ",".join(texts)


def _from_mapping(mapping: Mapping[Any, Any], client: str, settings_class: type[ClientSettings]) -> dict[str, Any]:
    """The settings in a mapping with names in Kafka's or in Python's form; text is converted. Names that only other
    clients have are left out."""
    hints = _hints(settings_class)
    fields = {field.name: field for field in dataclasses.fields(settings_class) if not field.metadata["internal"]}
    plaintext = PLAINTEXT in (_text(mapping.get("security.protocol")), _text(mapping.get("security_protocol")))
    aliases = _aliases(settings_class)
    values: dict[str, Any] = {}
    unused = []
    for given, value in mapping.items():
        name = str(given).replace(".", "_")
        name = aliases.get(name, name)
        if name not in fields:
            judgement = judged(str(given), value, settings_class.owner, plaintext=plaintext)
            if judgement is None or not judgement.no_effect:
                known = map(kafka_name, fields)
                why = f": {judgement.answer}" if judgement else guess(kafka_name(str(given)), known)
                raise ConfigError(f"{client} has no setting {given}{why}")
            unused.append(str(given))
            continue
        if name in values:
            raise ConfigError(f"{client} was given {given} twice")
        if isinstance(value, str):
            value = _from_text(str(given), value.strip(), hints[name], fields[name].metadata["classes"])
        if name.endswith("_ms") and type(value) is int and INT32_MAX < value <= INT64_MAX:
            value = INT32_MAX  # Java's Long.MAX_VALUE, for ever: three weeks are as good
        values[name] = value
    if unused:
        logger.debug("%s: these settings have no effect here: %s", client, ", ".join(sorted(unused)))
    return values


def _text(value: object) -> str:
    return str(value).strip().upper()


def _from_text(name: str, text: str, hint: Any, classes: Mapping[str, Any]) -> Any:
    """Text as a number or truth value, where the setting cannot be text; for the name of a Java class, what does the
    same."""
    kinds = _kinds(hint)
    if classes and "." in text:
        java = text.rpartition(".")[2]
        if java not in classes:
            raise ConfigError(f"{name}={text!r} is a class of Java's: give a function, as in moldau.serializers")
        return classes[java]
    if str in kinds or Literal in kinds:
        return text
    if bool in kinds:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{name}={text!r} is not true or false")
        return text.lower() == "true"
    if int in kinds:
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{name}={text!r} is not a whole number") from None
    return text


def _check(name: str, value: Any, hint: Any, metadata: Mapping[str, Any]) -> None:
    """Raise `ConfigError` unless the value has the setting's type and is not below its lowest number."""
    kinds = _kinds(hint)
    if value is None:
        if type(None) not in kinds:
            raise ConfigError(f"{name} cannot be None")
        return
    plain = {int: "a whole number", bool: "True or False", str: "text"}
    expected = [plain[kind] for kind in kinds if kind in plain]
    if expected and len(expected) == len(kinds - {type(None)}) and type(value) not in kinds:
        shown = name if metadata["secret"] else f"{name}={value!r}"
        raise ConfigError(f"{shown} is not {' or '.join(expected)}")
    low = metadata["low"]
    if low is not None and type(value) is int and not low <= value <= INT32_MAX:
        raise ConfigError(f"{name}={value} is not between {low} and {INT32_MAX}")


def _kinds(hint: Any) -> set[Any]:
    """The types that a hint allows: `int | None` is {int, NoneType}."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return {kind for one in typing.get_args(hint) for kind in _kinds(one)}
    return {typing.get_origin(hint) or hint}
