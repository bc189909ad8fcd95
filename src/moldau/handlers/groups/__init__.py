"""Groups of consumers: members, offsets, what administrators ask."""
