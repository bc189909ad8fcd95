"""The columns of the source, those of Spark's Kafka connector."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from moldau.pipeline.options import OptionError, Options

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", ArrayType(HEADER)),
    ]
)


def schema_of(options: Options) -> StructType:
    """The columns that the options choose."""
    return StructType([SCHEMA[name] for name in options.columns])


def check_schema(schema: StructType, options: Options) -> None:
    """Raise `OptionError` for a schema of the user's own."""
    fixed = schema_of(options)
    if schema.simpleString() != fixed.simpleString():
        raise OptionError(
            f"The moldau source has the fixed schema {fixed.simpleString()}; leave out .schema(), and choose columns "
            "with the option columns."
        )
