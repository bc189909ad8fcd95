"""Exchanges of SASL without I/O: bytes in, bytes out."""
