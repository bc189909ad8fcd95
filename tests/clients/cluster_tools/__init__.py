"""Apache Kafka's command-line tools operate a cluster of three brokers: ours must be told what Kafka was told."""
