"""Avro schemas: what is valid, the one way to write each, and which can read what another has written."""
