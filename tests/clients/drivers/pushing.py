"""confluent-kafka produces a record now and then, and pushes its metrics meanwhile, until standard input ends.

Arguments: the addresses, the topic.
"""

import sys
import threading

from confluent_kafka import Producer


def main() -> None:
    servers, topic = sys.argv[1:]
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    producer = Producer({"bootstrap.servers": servers, "client.id": "pushing-librdkafka"})
    while not ended.wait(0.05):
        producer.produce(topic, b"x")
        producer.poll(0)
    producer.flush(30)


main()
