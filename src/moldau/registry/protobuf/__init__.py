"""Protobuf schemas: `.proto` texts to descriptors and back, and which changes keep old messages readable."""
