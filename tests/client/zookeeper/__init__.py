"""Clients that use ZooKeeper, as those of Kafka 0.7 and 0.8 do."""
