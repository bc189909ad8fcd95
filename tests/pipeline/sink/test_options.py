"""Options and columns of the sink: Kafka's names, and one sentence for each that is wrong."""

import pytest
from pyspark.sql import types

from moldau.pipeline.options import OptionError
from moldau.pipeline.sink.options import read_sink_options
from moldau.pipeline.sink.schema import columns_to_write

HEADERS = types.ArrayType(
    types.StructType([types.StructField("key", types.StringType()), types.StructField("value", types.BinaryType())])
)
KINDS = {
    "string": types.StringType(), "binary": types.BinaryType(), "int": types.IntegerType(), "bigint": types.LongType(),
    "timestamp": types.TimestampType(), "headers": HEADERS,
    "map": types.MapType(types.StringType(), types.StringType()),
}  # fmt: skip
GOOD = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t"}


def test_settings_of_the_producer_are_passed_on() -> None:
    options = read_sink_options(
        {**GOOD, "kafka.linger.ms": "50", "checkpointLocation": "/x", "KAFKA.compression.type": "lz4"}
    )
    made = options.producer_settings("id-1")
    assert (made.linger_ms, made.compression_type, made.transactional_id) == (50, "lz4", "id-1")
    assert made.bootstrap_servers == "localhost:9092" and made.transaction_timeout_ms == 600_000


def test_what_is_set_anyway_may_be_set(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "moldau.pipeline"):
        for acks in ("all", "-1"):
            given = {"kafka.acks": acks, "kafka.enable.idempotence": "true", "includeHeaders": "true"}
            assert read_sink_options({**GOOD, **given}) == read_sink_options(GOOD)
    assert caplog.messages[0] == "Option includeHeaders has no effect: a column headers is written if there is one."


def parsed(text: str) -> types.StructType:
    """The schema `key string, value binary`."""
    columns = [column.split() for column in text.split(",")]
    return types.StructType([types.StructField(name, KINDS[kind]) for name, kind in columns])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topic": "t"}, "bootstrapServers is missing: it names the broker to write to"),
        ({**GOOD, "topics": "t"}, "The moldau sink has no option 'topics'; did you mean topic"),
        ({**GOOD, "subscribe": "t"}, "no option 'subscribe'"),
        ({**GOOD, "kafka.lingerms": "1"}, "The client has no setting lingerms; did you mean linger.ms"),
        ({**GOOD, "kafka.acks": "1"}, "transactions need acks=all"),
        ({**GOOD, "kafka.enable.idempotence": "false"}, "transactions need it"),
        ({**GOOD, "includeHeaders": "yes"}, "includeHeaders is true or false"),
        ({**GOOD, "kafka.transactional.id": "x"}, "each task has its own"),
        ({**GOOD, "kafka.compression.type": "rar"}, "compression_type='rar' is not one of"),
        ({**GOOD, "topic": ""}, "cannot be empty"),
        ({**GOOD, "txnAppId": "nightly"}, "txnAppId (a name) and txnVersion (a number) go together"),
        ({**GOOD, "txnVersion": "1"}, "go together"),
        ({**GOOD, "txnAppId": "", "txnVersion": "1"}, "go together"),
        ({**GOOD, "txnAppId": "nightly", "txnVersion": "-1"}, "txnVersion is a whole number that grows"),
        ({**GOOD, "txnAppId": "nightly", "txnVersion": str(1 << 63)}, "txnVersion is a whole number that grows"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as raised:
        read_sink_options(options)
    text = str(raised.value)
    assert said in text and text.endswith(".") and "\n" not in text


def test_columns_of_the_kafka_connector_are_written_and_others_ignored() -> None:
    everything = "key string, value binary, topic string, partition int, offset bigint, timestamp timestamp, n int"
    schema = parsed(f"{everything}, headers headers")
    named = read_sink_options(GOOD)
    assert columns_to_write(schema, named) == ("key", "value", "partition", "headers", "timestamp")
    by_column = read_sink_options({"bootstrapServers": "h:1"})
    assert columns_to_write(schema, by_column) == ("key", "value", "topic", "partition", "headers", "timestamp")


@pytest.mark.parametrize(
    ("schema", "topic", "said"),
    [
        ("key string", "t", "needs a column value, of type string or binary; the columns are key"),
        ("value string", "", "needs the option topic, or a column topic"),
        ("value bigint", "t", "takes column value as string or binary, not bigint: cast it"),
        ("value string, headers map", "t", "takes column headers as array<struct"),
        ("value string, partition bigint", "t", "column partition as int, not bigint"),
    ],
)
def test_a_wrong_schema_is_one_sentence(schema: str, topic: str, said: str) -> None:
    options = read_sink_options({"bootstrapServers": "h:1", **({"topic": topic} if topic else {})})
    with pytest.raises(OptionError) as raised:
        columns_to_write(parsed(schema), options)
    assert said in str(raised.value)
