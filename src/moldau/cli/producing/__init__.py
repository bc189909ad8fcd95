"""`moldau produce`: each line becomes a record."""
