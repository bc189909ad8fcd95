"""Produce, and what it waits for: other replicas, deadlines, the transaction's coordinator."""
