"""Message streams: a consumer's topics, shared out to iterators of threads or tasks."""
