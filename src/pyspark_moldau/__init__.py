"""Makes `format("moldau")` known to Spark, which looks for a DefaultSource in top-level packages named pyspark_*."""

from moldau.pipeline.data_source import MoldauSource as DefaultSource

__all__ = ["DefaultSource"]
