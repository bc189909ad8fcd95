"""Simulated worlds: a broker on a simulated machine, with clients, consumer groups or transactions, and what breaks.

`python -m tests.worlds SEED` lives through one world again. Everything drawn by chance comes from the seed, so one seed
has one history. Checkers compare what clients were told with what the log holds.
"""
