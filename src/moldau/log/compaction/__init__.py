"""Log compaction: which logs are dirty, what stays of their batches, and the crash-safe swap of segments."""
