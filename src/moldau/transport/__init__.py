"""What protects a connection: TLS contexts, and who is at its end (SASL), as state machines without I/O."""
