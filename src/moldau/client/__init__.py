"""The client library: routing to leaders and coordinators, producer, consumer with groups, admin, reading of
columns."""
