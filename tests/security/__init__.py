"""Access rights, quotas and credentials: their rules, and what keeps them."""
