"""JSON Schemas: their documents and references, and which changes keep old values valid."""
