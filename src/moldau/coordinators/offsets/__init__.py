"""Committed offsets: their records, their values, and those that wait for the end of a transaction."""
