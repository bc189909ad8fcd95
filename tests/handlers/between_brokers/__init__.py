"""What brokers ask each other, and what a member of a cluster forwards to the controller."""
