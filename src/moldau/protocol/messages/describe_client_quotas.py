"""DescribeClientQuotas (API key 48): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, FLOAT64, INT8, INT16, INT32, STRING, message


@message
class ComponentData:
    entity_type: str = STRING()
    match_type: int = INT8()
    match: str | None = STRING(nullable=0)


@message
class DescribeClientQuotasRequest:
    components: list[ComponentData] = ARRAY(ComponentData)
    strict: bool = BOOL()


@message
class EntityData:
    entity_type: str = STRING()
    entity_name: str | None = STRING(nullable=0)


@message
class ValueData:
    key: str = STRING()
    value: float = FLOAT64()


@message
class EntryData:
    entity: list[EntityData] = ARRAY(EntityData)
    values: list[ValueData] = ARRAY(ValueData)


@message
class DescribeClientQuotasResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    entries: list[EntryData] | None = ARRAY(EntryData, nullable=0)
