"""Groups of real clients whose members come, go and are killed while records keep coming; judged from the broker's own
trace."""
