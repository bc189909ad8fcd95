"""Moving the log of a replica from one log folder of its broker to another (KIP-113)."""
