"""Transactions in simulation: producers with transactional ids, what they were told, and what readers may see of it."""
