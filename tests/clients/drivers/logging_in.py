"""Python's clients log in, send a record and read it: `logging_in.py CLIENT BOOTSTRAP MECHANISM USER PASSWORD`,
or a token as the password.

Prints `ok`, or what the client says: its log, the name of its error, and its text.
"""

import asyncio
import logging
import sys
import time

SECONDS = 30


def confluent(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

    failed: list[KafkaError] = []

    def told(error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED):
            failed.append(error)

    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "error_cb": told,
        "log_level": 0,
    }
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (password, time.time() + 600)
    else:
        settings |= {"sasl.username": user, "sasl.password": password}
    producer = Producer(settings)
    producer.produce("logins", b"hello")
    for _ in range(SECONDS * 10):
        if not producer.flush(0.1) or failed:
            break
    if failed:
        producer.purge()
        raise KafkaException(failed[0])
    consumer = Consumer({**settings, "group.id": "logins", "auto.offset.reset": "earliest"})
    consumer.subscribe(["logins"])
    message = consumer.poll(SECONDS)
    assert message is not None and message.value() == b"hello", message
    consumer.close()


def kafka_python(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    settings = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    if mechanism == "OAUTHBEARER":
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Provider(AbstractTokenProvider):
            def token(self) -> str:
                return password

        settings["sasl_oauth_token_provider"] = Provider()
    producer = KafkaProducer(**settings)
    producer.send("logins", b"hello").get(SECONDS)
    producer.close()
    consumer = KafkaConsumer("logins", auto_offset_reset="earliest", group_id="logins", **settings)
    assert next(consumer).value == b"hello"
    consumer.close()


def aiokafka(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    settings = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    if mechanism == "OAUTHBEARER":
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):
            async def token(self) -> str:
                return password

        settings["sasl_oauth_token_provider"] = Provider()

    async def both() -> None:
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        await producer.send_and_wait("logins", b"hello")
        await producer.stop()
        consumer = AIOKafkaConsumer("logins", auto_offset_reset="earliest", group_id="logins", **settings)
        await consumer.start()
        assert (await asyncio.wait_for(consumer.getone(), SECONDS)).value == b"hello"
        await consumer.stop()

    asyncio.run(both())


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR, stream=sys.stdout)
    client, *arguments = sys.argv[1:]
    try:
        {"confluent": confluent, "kafka_python": kafka_python, "aiokafka": aiokafka}[client](*arguments)
    except BaseException as error:
        print(type(error).__name__, error)
    else:
        print("ok")
