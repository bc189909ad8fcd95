"""Which page is in which chapter of the site, if need be with another title, and the front page."""

FRONT = """# Moldau

A commit log that speaks the Apache Kafka protocol, in Python: a broker in milliseconds, a cluster on a real ZooKeeper,
a client library with columns, a pipeline into Delta and Iceberg tables on Spark. Any Kafka client works, unmodified.

```console
$ pip install .                # in a clone; Python 3.11 or newer
$ moldau server start
listening on localhost:9092
```

| I want to ... | |
|---|---|
| see it in five minutes | [Quick start](docs/quick-start.md) |
| understand logs and groups | [Concepts](docs/concepts.md), with drawings; [glossary](docs/glossary.md) |
| write a program | [Producer](docs/producer.md), [consumer](docs/consumer.md), [tables](docs/columns.md) |
| have a broker in my tests | [Testing](docs/testing.md) |
| run a broker | [Operations](docs/operations.md), [commands](reference/commands.md) |
| look a setting up | [Of brokers and topics](docs/settings.md), [of clients](reference/client-settings.md) |
| run a cluster | [Operating a cluster](docs/cluster-operations.md) |
| protect it | [Security](docs/security.md) in ten minutes; [threats and promises](SECURITY.md) |
| look at it | [Console](docs/console.md) in a browser, [metrics](docs/metrics.md), [doctor](docs/doctor.md) |
| have the log in Spark, or in tables | [Spark](docs/spark.md), [warehouse](docs/warehouse.md) |
| have schemas, or a second site | [Registry](docs/registry.md), [mirrors](docs/mirror.md) |
| change from Kafka, Redpanda or testcontainers | [Coming from another broker](docs/coming-from-brokers.md) |
| change from confluent-kafka, kafka-python or aiokafka | [Coming from another client](docs/coming-from.md) |
| use the commands of Kafka's scripts | [Each script beside ours](docs/commands.md) |
| understand an error | [Error codes](reference/error-codes.md), [log lines](docs/operations.md#read-the-log-lines) |
| know what it does not do | [Limits](docs/limits.md) |
| know how it works, and how fast | [Architecture](ARCHITECTURE.md), [performance](docs/performance.md) |
"""

CHAPTERS = {
    "Begin": [
        "docs/quick-start.md", "docs/concepts.md", "docs/installation.md", "docs/testing.md", "docs/limits.md",
        "What there is, on one page <README.md>",
        "All pages, by reader <docs/index.md>",
    ],
    "Clients": [
        "docs/producer.md", "docs/consumer.md", "docs/columns.md", "docs/admin.md", "docs/schemas.md",
        "docs/secure-clients.md", "docs/zookeeper-clients.md",
    ],
    "Coming from": ["docs/coming-from-brokers.md", "docs/coming-from.md", "docs/commands.md"],
    "Operations": [
        "docs/operations.md", "docs/cluster-operations.md", "docs/metrics.md", "docs/console.md", "docs/doctor.md",
        "docs/files.md", "docs/storage.md", "docs/coordinators.md", "docs/mirror.md", "docs/mirror-foreign.md",
        "docs/registry.md",
    ],
    "Security": [
        "docs/security.md", "docs/tls.md", "docs/logins.md", "docs/access-rights.md", "docs/quotas.md",
        "Threats and promises <SECURITY.md>",
    ],
    "Spark and the warehouse": [
        "docs/spark.md", "docs/streams.md", "docs/warehouse.md", "docs/decoding.md", "docs/upsert.md", "docs/audit.md",
        "docs/search-log.md",
    ],
    "Reference": [
        "reference/commands.md", "docs/settings.md", "reference/client-settings.md", "reference/versions.md",
        "docs/protocol.md", "reference/metrics.md", "reference/error-codes.md", "docs/glossary.md",
        "docs/performance.md", "CHANGELOG.md",
    ],
    "Design": ["ARCHITECTURE.md", "CONTRIBUTING.md"],
}  # fmt: skip
