"""`moldau top`."""
