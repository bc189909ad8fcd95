"""Classic groups: a leader among the members assigns partitions, and the coordinator runs the rebalances."""
