"""`moldau mirror`: start, status."""
