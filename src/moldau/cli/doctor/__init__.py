"""`moldau doctor`: looks for what is wrong with a broker, a cluster and their machine, and says what to do about it."""
