"""What `moldau server start` can run beside the broker, in its process."""
