"""Writing to topics with Spark: `writing.py` runs in the tasks, `batch.py` and `stream.py` are what Spark calls."""
