"""Random programs that consume, and the model of what they have processed."""
