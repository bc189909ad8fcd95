"""How commands of the pipeline decode values and keys: what their options say."""

from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.pipeline_needs import need
from moldau.errors import ConfigError

if TYPE_CHECKING:
    from moldau.pipeline.decoding.choosing import Decoding


REGISTERED = ("json", "avro", "protobuf")
"""What a schema registry can say the columns of."""


def decodings_of(
    kind: str,
    schema: str,
    registry: str,
    event_time: str,
    type_share: float,
    key_kind: str = "none",
    key_schema: str = "",
    envelope: str = "",
    brokers: str = "",
) -> "tuple[Decoding, Decoding]":
    """How values and keys are decoded; the settings that the brokers carry may be about the registry, too. Raises
    `ConfigError`."""
    from moldau.client.registry.access import of_registry
    from moldau.client.registry.schema_registry import SchemaRegistry
    from moldau.client.security.brokers import settings_in
    from moldau.pipeline.decoding.choosing import Decoding

    kind, message = _kind_and_message(kind)
    key_kind, key_message = _kind_and_message(key_kind)
    if "avro" in (kind, key_kind):
        need("fastavro", extra="avro")
    if "protobuf" in (kind, key_kind):
        need("google.protobuf", extra="protobuf")
    settings = of_registry(settings_in(brokers))
    if registry:
        settings["url"] = registry
    is_needed = registry or ("url" in settings and {*REGISTERED} & {kind, key_kind})
    given = SchemaRegistry(settings) if is_needed else None
    of_values = given if kind in REGISTERED or key_kind not in REGISTERED else None
    of_keys = given if key_kind in REGISTERED else None
    text = _schema_text("--schema", schema)
    values = Decoding(kind, text, of_values, event_time, type_share, envelope=envelope, message=message)
    text = _schema_text("--key-schema", key_schema)
    keys = Decoding(key_kind, text, of_keys, of="key", envelope=envelope, message=key_message)
    values.check()
    keys.check()
    return values, keys


def _kind_and_message(kind: str) -> tuple[str, str]:
    """`protobuf:NAME` names a message. Raises `ConfigError`."""
    head, colon, message = kind.partition(":")
    if head != "protobuf" or not colon:
        return kind, ""
    if not message:
        raise ConfigError(f"{kind} lacks the message behind the colon, such as protobuf:shop.Order")
    return head, message


def _schema_text(option: str, path: str) -> str:
    """The text of a schema's file, empty without one. Raises `ConfigError`."""
    if not path:
        return ""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{option} {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{option} {path} cannot be read: it is not UTF-8") from None
    if not text:
        raise ConfigError(f"{option} {path} is empty")
    return text
