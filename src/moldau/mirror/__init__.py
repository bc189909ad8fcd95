"""Mirrors between clusters: topics of one cluster copied into another one, byte by byte, at the same offsets."""
