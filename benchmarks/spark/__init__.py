"""The pipeline beside Spark's Kafka connector."""
