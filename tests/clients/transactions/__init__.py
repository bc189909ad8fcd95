"""Exactly once with real clients while they and the broker are killed: programs that work in transactions, brought
down and up again by a drawn script, and judges of what is left.
"""
