"""The columns that the sink writes, those of Spark's Kafka connector and `timestamp`. Other columns are ignored."""

from pyspark.sql.types import StructType

from moldau.pipeline.options import OptionError
from moldau.pipeline.sink.options import SinkOptions

TEXT_OR_BYTES = ("string", "binary")
HEADERS = "array<struct<key:string,value:binary>>"
TYPES = {
    "key": TEXT_OR_BYTES,
    "value": TEXT_OR_BYTES,
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADERS,),
    "timestamp": ("timestamp",),
}


def columns_to_write(schema: StructType, options: SinkOptions) -> tuple[str, ...]:
    """The columns of this schema that are written. Raises `OptionError` if value or topic is missing, or a column has
    another type than the sink takes."""
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in kinds:
        raise OptionError(f"The sink needs a column value, of type string or binary; the columns are {_named(kinds)}.")
    if "topic" not in kinds and options.topic is None:
        raise OptionError("The sink needs the option topic, or a column topic of type string.")
    for name, allowed in TYPES.items():
        if name in kinds and kinds[name] not in allowed:
            raise OptionError(f"The sink takes column {name} as {' or '.join(allowed)}, not {kinds[name]}: cast it.")
    return tuple(name for name in TYPES if name in kinds and not (name == "topic" and options.topic is not None))


def _named(kinds: dict[str, str]) -> str:
    return ", ".join(kinds) or "none"
