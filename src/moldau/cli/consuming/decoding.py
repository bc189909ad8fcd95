"""The option `--schema-registry` of `moldau consume`."""

from moldau.cli.output import note
from moldau.client.registry.access import of_registry
from moldau.client.registry.any_kind import AnyKindDeserializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.security.brokers import settings_in


def registry_decoder(url: str, brokers: str) -> AnyKindDeserializer:
    """Decodes with the registry at `url`. The settings that the brokers carry may say how to log in there. What does
    not fit its schema is told once for each reason. Raises `ConfigError`."""
    said: set[str] = set()

    def failed(reason: str) -> None:
        if reason not in said and len(said) < 100:
            said.add(reason)
            note(f"warning: {reason}; such data is printed as it is")

    return AnyKindDeserializer(SchemaRegistry({**of_registry(settings_in(brokers)), "url": url}), failed)
