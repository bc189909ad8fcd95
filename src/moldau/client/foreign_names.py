"""Names of settings that only librdkafka has, for users who come from one of its bindings."""

KAFKAS_NAMES = {
    "batch.num.messages": "batch.size",
    "compression.codec": "compression.type",
    "dr_cb": "on_delivery, an argument of send",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "on_delivery": "on_delivery, an argument of send",
    "queue.buffering.max.kbytes": "buffer.memory (in bytes)",
    "queue.buffering.max.messages": "buffer.memory (in bytes)",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "socket.timeout.ms": "request.timeout.ms",
}
"""librdkafka's name -> Kafka's."""


def kafkas_name(name: str) -> str | None:
    """Kafka's name for a setting that librdkafka names like this; None if it is no such name."""
    return KAFKAS_NAMES.get(name) or KAFKAS_NAMES.get(name.replace("_", "."))
