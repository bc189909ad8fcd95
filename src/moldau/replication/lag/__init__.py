"""How long records have waited for a consumer group: read from the replicas here, and asked of other brokers."""
