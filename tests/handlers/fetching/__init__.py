"""Fetch for consumers, and the APIs that look offsets up in a log."""
