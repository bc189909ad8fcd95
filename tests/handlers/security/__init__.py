"""Access rights, quotas and credentials."""
