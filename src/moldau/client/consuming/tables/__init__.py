"""Fetched records as Arrow tables."""
