"""The controller: it decides about changes, writes them, and shows them to all brokers."""
