"""Options of the data source: Kafka's names in any case, and one sentence for each that is wrong."""

import pytest

from moldau.names import TopicPartition
from moldau.pipeline.options import EARLIEST, LATEST, WITHOUT_EFFECT, Edge, OptionError, TopicSelection, read_options

GOOD = {"bootstrapServers": "localhost:9092", "subscribe": "a"}


def test_the_kafka_connectors_names_are_understood_in_any_case() -> None:
    options = read_options(
        {
            "KAFKA.bootstrap.servers": "one:1,two:2",
            "SubscribePattern": "fl.*",
            "startingoffsets": '{"a":{"0":23,"1":-2}}',
            "endingOffsets": "latest",
            "failondataloss": "FALSE",
            "minPartitions": "8",
        }
    )
    assert options.bootstrap_servers == "one:1,two:2"
    assert options.subscription == TopicSelection(pattern="fl.*")
    assert options.starting == Edge(
        EARLIEST, offsets=((TopicPartition("a", 0), 23), (TopicPartition("a", 1), EARLIEST))
    )
    assert options.ending == Edge(LATEST)
    assert (options.fail_on_data_loss, options.partitions_min) == (False, 8)


def test_topics_and_partitions_can_be_named() -> None:
    assert read_options({**GOOD, "subscribe": "b, a,b"}).subscription.topics == ("b", "a")
    assigned = read_options({"bootstrapServers": "h:1", "assign": '{"t":[2,0]}'}).subscription.assigned
    assert assigned == (TopicPartition("t", 0), TopicPartition("t", 2))


def test_a_timestamp_wins_over_offsets() -> None:
    starting = read_options({**GOOD, "startingTimestamp": "1357000000000", "startingOffsets": "latest"}).starting
    assert starting is not None and starting.timestamp_ms == 1_357_000_000_000


def test_columns_and_settings_of_the_client_are_chosen() -> None:
    options = read_options({**GOOD, "columns": "Value, offset", "kafka.client.id": "me", "kafka.fetch.max.bytes": "5"})
    assert (options.columns, options.client_id, options.fetch_max_bytes) == (("value", "offset"), "me", 5)
    assert read_options({**GOOD, "includeHeaders": "false"}).columns[-1] == "timestampType"
    waits = {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "2m", "kafka.default.api.timeout.ms": "1000"}
    options = read_options({**GOOD, **waits})
    assert (options.offsets_per_trigger_min, options.trigger_delay_max_s, options.timeout_ms) == (5, 120.0, 1000)


def test_a_group_is_named_or_made_of_a_prefix_and_what_is_read() -> None:
    assert read_options(GOOD).group_id is None
    assert read_options({**GOOD, "kafka.group.id": "g"}).group_id == "g"
    assert read_options({**GOOD, "kafka.group.id": "g", "groupIdPrefix": "lag"}).group_id == "g"
    one, same, other = (
        read_options({**GOOD, "groupIdPrefix": "lag", "subscribe": topic}).group_id for topic in ("a", "a", "b")
    )
    assert one == same != other and str(one).startswith("lag-")


def test_options_of_the_kafka_connector_that_mean_nothing_here_are_accepted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "moldau.pipeline"):
        assert read_options({**GOOD, **dict.fromkeys(WITHOUT_EFFECT, "3")}) == read_options(GOOD)
    assert caplog.messages[0].startswith(
        "Option fetchOffset.numRetries has no effect: look-ups are repeated for kafka."
    )
    assert len(caplog.messages) == len(WITHOUT_EFFECT)


def test_committed_records_are_read_unless_uncommitted_ones_are_asked_for() -> None:
    assert read_options(GOOD).isolation_level == "read_committed"
    for name in ("isolation.level", "kafka.isolation.level"):
        assert read_options({**GOOD, name: "read_uncommitted"}).isolation_level == "read_uncommitted"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {**GOOD, "isolation.level": "serializable"},
            "isolation.level is read_uncommitted or read_committed, not 'ser",
        ),
        ({**GOOD, "isolation.level": "read_committed", "kafka.isolation.level": "read_uncommitted"}, "disagree"),
        ({"subscribe": "a"}, "bootstrapServers is missing"),
        ({"bootstrapServers": "h:1"}, "exactly one of the options subscribe, subscribePattern and assign (none"),
        ({**GOOD, "assign": '{"a":[0]}'}, "subscribe and assign given"),
        ({**GOOD, "kafka.bootstrap.servers": "other:1"}, "disagree"),
        ({**GOOD, "subscribe": " "}, "subscribe is empty"),
        ({**GOOD, "subscribe": ",,"}, "names no topic"),
        ({"bootstrapServers": "h:1", "subscribePattern": "("}, "not a regular expression"),
        ({"bootstrapServers": "h:1", "assign": "[1]"}, 'like {"topic":[0,1]}'),
        ({"bootstrapServers": "h:1", "assign": '{"t":[-1]}'}, "needs a list of partitions"),
        ({"bootstrapServers": "h:1", "assign": "{}"}, "names no partition"),
        ({**GOOD, "startingOffsets": "yesterday"}, "startingOffsets must be earliest, latest or JSON"),
        ({**GOOD, "startingOffsets": '{"a":5}'}, "no object of partitions"),
        ({**GOOD, "startingOffsets": '{"a":{"0":-3}}'}, "at -3"),
        ({**GOOD, "startingOffsets": '{"a":{"x":1}}'}, "partition x"),
        ({**GOOD, "startingOffsets": '{"a":{"0":true}}'}, "at True"),
        ({**GOOD, "startingOffsets": "[" * 100_000}, "must be earliest"),
        ({**GOOD, "endingOffsets": "earliest"}, "cannot be earliest"),
        ({**GOOD, "endingOffsets": '{"a":{"0":-2}}'}, "cannot be -2"),
        ({**GOOD, "startingTimestamp": "2013-01-01"}, "milliseconds since 1970"),
        ({**GOOD, "startingOffsetsByTimestampStrategy": "never"}, "is error or latest"),
        ({**GOOD, "maxOffsetsPerTrigger": "0"}, "above zero"),
        ({**GOOD, "maxOffsetsPerTrigger": "many"}, "above zero"),
        ({**GOOD, "failOnDataLoss": "maybe"}, "true or false"),
        ({**GOOD, "includeHeaders": "no"}, "true or false"),
        ({**GOOD, "columns": "value,nothing"}, "names 'nothing', which is not one of key, value"),
        ({**GOOD, "columns": "value,VALUE"}, "names a column twice"),
        ({**GOOD, "columns": "headers", "includeHeaders": "false"}, "but includeHeaders is false"),
        ({**GOOD, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "(9) is above maxOffsetsPerTrigger (5)"),
        ({**GOOD, "maxTriggerDelay": "soon"}, "is a duration such as 30s"),
        ({**GOOD, "groupIdPrefix": "", "kafka.group.id": "b"}, "name of a group is empty"),
        ({**GOOD, "fetchOffset.numRetries": "often"}, "fetchOffset.numRetries is a whole number, not 'often'"),
        ({**GOOD, "kafka.max.poll.records": "-1"}, "kafka.max.poll.records is a whole number, not '-1'"),
        ({**GOOD, "startingOffsetsByTimestamp": '{"a":{"0":-2}}'}, "in milliseconds since 1970, not a partition 0"),
        ({**GOOD, "kafka.auto.offset.reset": "latest"}, "startingOffsets says where to start"),
        ({**GOOD, "kafka.zookeeper.connect": "zk:2181"}, "kafka.bootstrap.servers names the brokers"),
        ({**GOOD, "kafka.fetch.max.byte": "5"}, "has no setting fetch.max.byte; did you mean fetch.max.bytes"),
        ({**GOOD, "kafka.fetch.max.bytes": "much"}, "is not a whole number"),
        ({**GOOD, "startingOffset": "latest"}, "did you mean startingOffsets"),
        ({**GOOD, "kafka.security.protocol": "TLS"}, "security_protocol='TLS' is not one of PLAINTEXT, SSL"),
        ({**GOOD, "kafka.ssl.ca.location": "ca"}, "ssl_ca_location is given without security_protocol"),
        ({**GOOD, "kafka.ssl.key.pem": "SECRET"}, "kafka.ssl.key.pem would be shown in Spark's plans: put ssl.key.pem"),
        ({**GOOD, "clientConfig": "/nowhere"}, "clientConfig names a file of no use: cannot read /nowhere"),
    ],
)
def test_a_wrong_option_is_said_in_one_sentence(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as raised:
        read_options(options)
    text = str(raised.value)
    assert said in text and text.endswith(".") and "\n" not in text and len(text) < 400
