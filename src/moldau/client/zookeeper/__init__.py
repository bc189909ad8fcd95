"""Clients that find brokers, and share partitions, by ZooKeeper: the clients of Kafka 0.7 and 0.8."""
