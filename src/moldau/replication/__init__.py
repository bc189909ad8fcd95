"""One partition on the brokers that hold it: its leadership, its committed offsets, and the requests that wait for
it."""
