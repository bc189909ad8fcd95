"""The schema registry: Confluent's REST interface over a compacted topic of any Kafka compatible cluster."""
