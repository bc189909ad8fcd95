"""Python's clients log in, send a record and read it: `logging_in.py CLIENT BOOTSTRAP MECHANISM USER PASSWORD`,
or a token as the password. They print what `round_trips.py` says."""

import time
from typing import Any

import round_trips

TOPIC, RECORDS = "logins", (b"hello",)


def confluent(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (password, time.time() + 600)
    else:
        settings |= {"sasl.username": user, "sasl.password": password}
    round_trips.confluent(settings, TOPIC, RECORDS, ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"))


def _in_python(bootstrap: str, mechanism: str, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def kafka_python(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    settings = _in_python(bootstrap, mechanism, user, password)
    if mechanism == "OAUTHBEARER":
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Provider(AbstractTokenProvider):
            def token(self) -> str:
                return password

        settings["sasl_oauth_token_provider"] = Provider()
    round_trips.kafka_python(settings, TOPIC, RECORDS)


def aiokafka(bootstrap: str, mechanism: str, user: str, password: str) -> None:
    settings = _in_python(bootstrap, mechanism, user, password)
    if mechanism == "OAUTHBEARER":
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):
            async def token(self) -> str:
                return password

        settings["sasl_oauth_token_provider"] = Provider()
    round_trips.aiokafka(settings, TOPIC, RECORDS)


if __name__ == "__main__":
    round_trips.told({"confluent": confluent, "kafka_python": kafka_python, "aiokafka": aiokafka})
