"""Groups of the classic protocol: members agree among themselves, and the coordinator keeps them together."""
