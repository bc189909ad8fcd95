"""What makes a log whole again after a crash."""
