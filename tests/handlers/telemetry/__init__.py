"""Metrics that clients push to a broker (KIP-714)."""
