"""Tests mirror the tree of `src/moldau`; end-to-end ones are in `clients`, `pipeline`, `differential`."""
