"""Which page is in which chapter of the site, if need be with another title, and the front page."""

FRONT = """# Moldau

A commit log that speaks the Apache Kafka protocol, in Python: a broker in milliseconds, a cluster on a real ZooKeeper,
a client library with columns, a pipeline into Delta and Iceberg tables on Spark. Any Kafka client works, unmodified.

```console
$ pip install moldau
$ moldau server start
listening on localhost:9092
```

| I want to ... | |
|---|---|
| see it in five minutes | [Quick start](README.md) |
| write a producer or a consumer | [Producer](docs/producer.md), [consumer](docs/consumer.md) |
| have a broker in my tests | [Testing](docs/testing.md) |
| run a cluster | [Operating a cluster](docs/cluster-operations.md) |
| protect it | [Security](docs/security.md) |
| have the log in Spark | [Spark](docs/spark.md), [warehouse](docs/warehouse.md) |
| know how it works | [Concepts](docs/concepts.md), [architecture](ARCHITECTURE.md) |
| change from Kafka, Redpanda or testcontainers | [Coming from another broker](docs/coming-from-brokers.md) |
| change from another client, or know Kafka's scripts | [Client](docs/coming-from.md), [scripts](docs/commands.md) |
| know what it does not do | [Limits](docs/limits.md) |
"""

CHAPTERS = {
    "Begin": [
        "Quick start <README.md>", "docs/concepts.md", "docs/installation.md", "docs/testing.md", "docs/limits.md",
        "All pages, by reader <docs/index.md>",
    ],
    "Clients": [
        "docs/producer.md", "docs/consumer.md", "docs/columns.md", "docs/admin.md", "docs/schemas.md",
        "docs/secure-clients.md", "docs/zookeeper-clients.md",
    ],
    "Coming from": ["docs/coming-from-brokers.md", "docs/coming-from.md", "docs/commands.md"],
    "Operations": [
        "docs/operations.md", "docs/cluster-operations.md", "docs/metrics.md", "docs/console.md", "docs/doctor.md",
        "docs/storage.md", "docs/coordinators.md", "docs/mirror.md", "docs/mirror-foreign.md", "docs/registry.md",

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
        "reference/commands.md", "docs/settings.md", "docs/protocol.md", "reference/error-codes.md", "docs/glossary.md",
        "docs/performance.md", "CHANGELOG.md",
    ],
    "Design": ["ARCHITECTURE.md", "CONTRIBUTING.md"],
}  # fmt: skip
