"""Mirrors between two clusters."""
