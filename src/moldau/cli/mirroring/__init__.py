"""`moldau mirror`: start, status, failover, promote."""
