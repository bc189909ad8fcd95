"""`moldau client-metrics`: subscriptions to metrics of clients (KIP-714)."""
