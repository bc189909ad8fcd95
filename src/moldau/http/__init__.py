"""HTTP for servers of ours that are no brokers: the registry and the console."""
