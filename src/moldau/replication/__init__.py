"""One partition on the brokers that hold it: who leads, what is committed, who waits for it."""
