"""What the controller does about brokers that do not come back."""
