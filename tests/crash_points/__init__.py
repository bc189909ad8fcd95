"""Crash points: a log folder on a disk that loses power, fails and lies, against a model that cannot be wrong."""
