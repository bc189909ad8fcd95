"""The controller's work for brokers that do not come back."""
