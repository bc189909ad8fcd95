"""`moldau groups`: list, describe, delete, reset-offsets."""
