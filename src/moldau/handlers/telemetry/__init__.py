"""Metrics that clients push to brokers (KIP-714): which client is asked for which, and where they go."""
