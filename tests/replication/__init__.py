"""One partition on the brokers that hold it."""
