"""The handlers: each answers one API. A handler never opens a log, a batch or a socket."""
