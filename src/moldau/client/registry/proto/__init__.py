"""Protobuf schemas: `.proto` texts to descriptors and back, and the message types of a schema. Pure."""
