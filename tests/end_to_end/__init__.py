"""The broker as a whole: real processes, real sockets, real signals."""
