"""Membership of a group that is kept in ZooKeeper, as consumers of Kafka 0.7 and 0.8 are members."""
