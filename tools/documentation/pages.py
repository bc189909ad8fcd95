"""Which page is in which chapter of the site, if need be with another title, and the front page."""

FRONT = """# Moldau

A commit log that speaks the Apache Kafka protocol, in Python: a broker that starts in a fraction of a second, clusters
on ZooKeeper, a client library with columns, and a Spark pipeline into Delta and Iceberg tables. Any Kafka client works,
unmodified.

```console
$ pip install .  # in a clone, Python 3.11+
$ moldau server start
listening on localhost:9092
```

| I want to ... | |
|---|---|
| try Moldau in five minutes | [Quick start](docs/quick-start.md) |
| understand logs and groups | [Concepts](docs/concepts.md), with drawings; [glossary](docs/glossary.md) |
| write a program | [Producer](docs/producer.md), [consumer](docs/consumer.md), [tables](docs/columns.md) |
| use a broker in tests | [Testing](docs/testing.md), [faults and virtual time](docs/testing-faults.md) |
| run a broker | [Run a broker](docs/run-a-broker.md), [commands](reference/commands.md) |
| look up a setting | [Brokers and topics](docs/settings.md), [clients](reference/client-settings.md) |
| look up a method | [Client library](reference/client-api.md) |
| run a cluster | [Start a cluster](docs/start-a-cluster.md), [operate it](docs/cluster-operations.md) |
| protect a broker or a cluster | [Security](docs/security.md) in ten minutes; [threats and promises](SECURITY.md) |
| watch a broker or a cluster | [Console](docs/console.md), [metrics](docs/metrics.md), [doctor](docs/doctor.md) |
| read topics in Spark, or load them into tables | [Spark](docs/spark.md), [tables](docs/warehouse.md) |
| run a schema registry, or mirror a cluster | [Registry](docs/registry.md), [mirrors](docs/mirror.md) |
| change from Kafka, Redpanda or testcontainers | [Coming from another broker](docs/coming-from-brokers.md) |
| change from confluent-kafka, kafka-python or aiokafka | [Coming from another client](docs/coming-from.md) |
| change from Spark's Kafka connector | [Coming from Spark's connector](docs/coming-from-spark.md) |
| find the command for one of Kafka's scripts | [Kafka's scripts and Moldau's commands](docs/commands.md) |
| understand a log line | [Broker](docs/log-lines.md), [cluster](docs/cluster-log-lines.md) |
| understand an error | [Error codes](reference/error-codes.md), [the doctor](docs/doctor.md) |
| know the missing features | [Limits](docs/limits.md) |
| know the design and the performance | [Architecture](ARCHITECTURE.md), [performance](docs/performance.md) |
"""

CHAPTERS = {
    "Start here": [
        "docs/quick-start.md", "docs/concepts.md", "docs/installation.md", "docs/testing.md",
        "docs/testing-faults.md", "docs/limits.md",
        "Overview on one page <README.md>",
        "All pages by task <docs/index.md>",
    ],
    "Clients": [
        "docs/producer.md", "docs/consumer.md", "docs/consumer-groups.md", "docs/columns.md", "docs/admin.md",
        "docs/schemas.md", "docs/secure-clients.md", "docs/zookeeper-clients.md",
    ],
    "Coming from": [
        "docs/coming-from-brokers.md", "docs/coming-from.md", "docs/coming-from-spark.md", "docs/commands.md",
    ],
    "Operate a broker": [
        "docs/run-a-broker.md", "docs/log-lines.md", "docs/repair.md", "docs/files.md", "docs/storage.md",
        "docs/coordinators.md",
    ],
    "Operate a cluster": [
        "docs/start-a-cluster.md", "docs/cluster-operations.md", "docs/replication.md", "docs/move-partitions.md",
        "docs/zookeeper.md", "docs/cluster-log-lines.md",
    ],
    "Watch, copy, describe": [
        "docs/metrics.md", "docs/console.md", "docs/console-access.md", "docs/doctor.md", "docs/mirror.md",
        "docs/mirror-foreign.md", "docs/registry.md",
    ],
    "Security": [
        "docs/security.md", "docs/tls.md", "docs/logins.md", "docs/access-rights.md", "docs/quotas.md",
        "Threats and promises <SECURITY.md>",
    ],
    "Spark and the warehouse": [
        "docs/spark.md", "docs/spark-write.md", "docs/spark-cluster.md", "docs/streams.md", "docs/warehouse.md",
        "docs/exactly-once-loads.md", "docs/iceberg.md", "docs/decoding.md", "docs/decoding-json.md",
        "docs/decoding-schemas.md", "docs/debezium.md", "docs/rejected-records.md", "docs/upsert.md",
        "docs/tables-upkeep.md", "docs/removed-rows.md", "docs/audit.md", "docs/search-log.md",
    ],
    "Reference": [
        "reference/commands.md", "docs/settings.md", "reference/client-api.md", "reference/client-settings.md",
        "reference/versions.md",
        "docs/protocol.md", "docs/protocol-behaviour.md", "reference/metrics.md", "reference/error-codes.md",
        "docs/glossary.md", "CHANGELOG.md",
    ],
    "Performance": [
        "docs/performance.md", "docs/performance-clients.md", "docs/performance-replication.md",
        "docs/performance-clusters.md", "docs/performance-spark.md",
    ],
    "Design": ["ARCHITECTURE.md", "docs/performance-design.md", "CONTRIBUTING.md"],
}  # fmt: skip
