"""Connections to brokers, used by clients, followers and coordinators: addresses, version negotiation, links."""
