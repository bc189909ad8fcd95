"""What pages ask the cluster: in few requests, and only about what they show."""
