"""Fetch for followers: their sessions, and the requests that wait for records."""
