"""The subject under which a schema is registered: Confluent's strategies."""

from collections.abc import Callable

from moldau.errors import ConfigError

SubjectNameStrategy = Callable[[str, str, str | None], str]
"""From topic, `key` or `value`, and the record's full name (None if the schema has none) to the subject."""


def topic_name(topic: str, field: str, record: str | None) -> str:
    """`orders-value`: the default."""
    return f"{topic}-{field}"


def record_name(topic: str, field: str, record: str | None) -> str:
    """`com.example.Order`, in any topic. Raises `ConfigError` for a schema without a name."""
    return _named(record)


def topic_record_name(topic: str, field: str, record: str | None) -> str:
    """`orders-com.example.Order`. Raises `ConfigError` for a schema without a name."""
    return f"{topic}-{_named(record)}"


_BY_NAME: dict[str, SubjectNameStrategy] = {
    "topic": topic_name,
    "record": record_name,
    "topic-record": topic_record_name,
    "topicname": topic_name,
    "recordname": record_name,
    "topicrecordname": topic_record_name,
}


def strategy(given: str | SubjectNameStrategy) -> SubjectNameStrategy:
    """The strategy of this name, also as Confluent's Java classes (`TopicRecordNameStrategy`) and Python's client
    (`TOPIC_RECORD`) call it. Raises `ConfigError`."""
    if callable(given):
        return given
    name = str(given).rpartition(".")[2].removesuffix("Strategy").replace("_", "-").lower()
    if name not in _BY_NAME:
        raise ConfigError(
            f"subject.name.strategy={given!r} is not topic, record, topic-record or a function(topic, field, record)"
        )
    return _BY_NAME[name]


def _named(record: str | None) -> str:
    if not record:
        raise ConfigError("subject.name.strategy record and topic-record need a schema with a name, and this has none")
    return record
