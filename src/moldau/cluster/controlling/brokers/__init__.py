"""What the controller does about brokers that will not come back."""
