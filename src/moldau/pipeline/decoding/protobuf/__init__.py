"""Values in Protobuf, as a schema registry frames them."""
