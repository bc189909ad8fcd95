"""`moldau consume`."""
