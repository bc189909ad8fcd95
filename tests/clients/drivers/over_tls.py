"""Python's clients send records over mutual TLS and read them: `over_tls.py CLIENT BOOTSTRAP CA PEM`. PEM has the
client's key and certificate. They print what `round_trips.py` says."""

import ssl

import round_trips

TOPIC, RECORDS = "secure", [b"%03d" % number * 30_000 for number in range(40)]
"""3.6 MB."""


def confluent(bootstrap: str, authority: str, own: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": authority,
        **({"ssl.certificate.location": own, "ssl.key.location": own} if own else {}),
    }
    round_trips.confluent(settings, TOPIC, RECORDS, ("_SSL", "_TRANSPORT", "_ALL_BROKERS_DOWN"))


def kafka_python(bootstrap: str, authority: str, own: str) -> None:
    settings = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": authority,
        **({"ssl_certfile": own, "ssl_keyfile": own} if own else {}),
    }
    round_trips.kafka_python(settings, TOPIC, RECORDS)


def aiokafka(bootstrap: str, authority: str, own: str) -> None:
    context = ssl.create_default_context(cafile=authority)
    if own:
        context.load_cert_chain(own)
    settings = {"bootstrap_servers": bootstrap, "security_protocol": "SSL", "ssl_context": context}
    round_trips.aiokafka(settings, TOPIC, RECORDS)


if __name__ == "__main__":
    round_trips.told({"confluent": confluent, "kafka_python": kafka_python, "aiokafka": aiokafka})
