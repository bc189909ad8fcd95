"""Apache ZooKeeper in processes of its own, from the jars that PySpark ships: one server, or an ensemble."""
