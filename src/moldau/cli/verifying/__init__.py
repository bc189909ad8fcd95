"""`moldau verifiable`: produce, consume."""
