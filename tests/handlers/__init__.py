"""Tests of handlers: requests in, replies out, through the wire format of every version."""
