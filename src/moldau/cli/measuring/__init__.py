"""`moldau perf`: produce, consume, latency."""
