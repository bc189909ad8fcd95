"""The consumer: what is fetched, handed out and committed; rebalances, tables, streams, a partition as a sequence."""
