"""`moldau top`: a live view of a cluster in a terminal."""
