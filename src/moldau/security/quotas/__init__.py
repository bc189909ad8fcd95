"""Quotas of clients: whose they are, what is used, and for how long a client is throttled."""
