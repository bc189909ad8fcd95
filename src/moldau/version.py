"""The version of this package, which clients and brokers also name on the wire."""

VERSION = "0.1.0"
