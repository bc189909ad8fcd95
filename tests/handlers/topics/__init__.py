"""Topics, their partitions, records and settings, and the settings of brokers."""
