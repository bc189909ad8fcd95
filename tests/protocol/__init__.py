"""Tests of the wire: our message tables against kio's, headers, hostile bytes, and what is packed by hand."""
