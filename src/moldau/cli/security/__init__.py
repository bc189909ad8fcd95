"""The commands about who may connect, and what they may do."""
