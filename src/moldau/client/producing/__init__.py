"""The producer: records into batches, batches to leaders, results to callers; transactions and tables."""
