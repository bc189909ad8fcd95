"""What the broker does for each request. A handler never opens a log, a batch or a socket."""
