"""AlterClientQuotas (API key 49): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, FLOAT64, INT16, INT32, STRING, message


@message
class EntityData:
    entity_type: str = STRING()
    entity_name: str | None = STRING(nullable=0)


@message
class OpData:
    key: str = STRING()
    value: float = FLOAT64()
    remove: bool = BOOL()


@message
class EntryData:
    entity: list[EntityData] = ARRAY(EntityData)
    ops: list[OpData] = ARRAY(OpData)


@message
class AlterClientQuotasRequest:
    entries: list[EntryData] = ARRAY(EntryData)
    validate_only: bool = BOOL()


@message
class EntryResult:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    entity: list[EntityData] = ARRAY(EntityData)


@message
class AlterClientQuotasResponse:
    throttle_time_ms: int = INT32()
    entries: list[EntryResult] = ARRAY(EntryResult)
