"""`moldau consume`: records as lines."""
