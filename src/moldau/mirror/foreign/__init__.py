"""Mirrors into a foreign Kafka: MirrorMaker 2's names, rules and internal topics, and records exactly once."""
