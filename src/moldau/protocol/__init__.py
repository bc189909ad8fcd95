"""Bytes <-> messages, without any I/O."""
