"""Sockets: the server that listens, and the connections that dial."""
