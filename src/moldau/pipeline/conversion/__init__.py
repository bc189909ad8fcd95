"""Conversion of a warehouse of format 1, with manifests of our own, into Delta tables."""
