"""Transactions and the producers that make them."""
