"""Reading topics with Spark: `batch.py` and `stream.py` plan on the driver, `reading.py` runs in the tasks."""
