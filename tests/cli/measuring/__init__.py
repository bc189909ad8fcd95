"""`moldau perf`."""
