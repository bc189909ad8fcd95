"""Clients of a schema registry with Confluent's REST interface, and the serializers that use one."""
