"""The one path of every request: its connection's session, the call, the gate, its handler, the reply."""
