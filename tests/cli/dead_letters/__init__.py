"""`moldau dead-letters`."""
