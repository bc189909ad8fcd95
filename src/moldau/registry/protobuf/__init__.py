"""Protobuf schemas as the registry has them, and which changes keep old messages readable."""
