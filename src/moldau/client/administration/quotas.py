"""Client quotas: describe and alter (KIP-546)."""

from collections.abc import Mapping

from moldau.client.administration.asking import AdminPart, failure
from moldau.client.failures import all_of
from moldau.errors import KafkaError
from moldau.protocol.apis import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of a type ("user", "client-id", "ip") and a name; None as name is the default of the type."""


class QuotasPart(AdminPart):
    """The part of an admin client for client quotas."""

    async def describe_client_quotas(
        self, match: Mapping[str, str | None] | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The client quotas, by entity. `match` limits them: type -> name, None for the type's default; with `strict`
        an entity must not have any other type."""
        messages = DESCRIBE_CLIENT_QUOTAS.messages
        components = [
            messages.ComponentData(entity_type=kind, match_type=1 if name is None else 0, match=name)
            for kind, name in (match or {}).items()
        ]
        request = messages.DescribeClientQuotasRequest(components=components, strict=strict)
        reply = await self._ask(DESCRIBE_CLIENT_QUOTAS, request, "describing client quotas")
        return {
            tuple((part.entity_type, part.entity_name) for part in entry.entity): {v.key: v.value for v in entry.values}
            for entry in reply.entries or []
        }

    async def alter_client_quotas(
        self, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> dict[QuotaEntity, KafkaError | None]:
        """Set quotas, or remove them (None): `{(("user", "ann"),): {"producer_byte_rate": 1e6}}`. With `validate_only`
        the request is only checked. Returns None or the error of each entity."""
        messages = ALTER_CLIENT_QUOTAS.messages
        entries = [
            messages.EntryData(
                entity=[messages.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    messages.OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in changes.items()
        ]
        request = messages.AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
        reply = await self._ask(ALTER_CLIENT_QUOTAS, request, "altering client quotas")
        results = {frozenset((e.entity_type, e.entity_name) for e in one.entity): one for one in reply.entries}
        by_entity = {entity: results[frozenset(entity)] for entity in changes if frozenset(entity) in results}
        return {
            entity: failure(result, f"quotas of {_shown(entity)}")
            for entity, result in all_of(by_entity, changes).items()
        }


def _shown(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {'by default' if name is None else name}" for kind, name in entity)
