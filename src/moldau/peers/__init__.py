"""Connections to other brokers, as clients, followers and coordinators make them: addresses, versions, links."""
