"""kafka-python writes and reads messages exactly: `kafka_python.py write|read ADDRESS TOPIC COUNT CODEC`."""

from exact import Message, run
from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def write(address: str, topic: str, messages: list[Message], codec: str) -> None:
    producer = KafkaProducer(bootstrap_servers=address, compression_type=None if codec == "none" else codec)
    sent = [
        producer.send(topic, value=m.value, key=m.key, headers=m.headers, timestamp_ms=m.timestamp_ms) for m in messages
    ]
    producer.flush()
    for one in sent:
        one.get(60)
    producer.close()


def read(address: str, topic: str, count: int) -> list[Message]:
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
    partitions = consumer.partitions_for_topic(topic)
    consumer.assign([TopicPartition(topic, number) for number in partitions])
    found: list[Message] = []
    while len(found) < count:
        for records in consumer.poll(1_000).values():
            found += [Message(r.key, r.value, list(r.headers), r.timestamp, r.partition, r.offset) for r in records]
    consumer.close()
    return found


run(write, read)
