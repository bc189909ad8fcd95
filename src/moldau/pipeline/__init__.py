"""The Spark pipeline: a data source and a sink, loads into tables, an audit, stream operations.

Everything here reaches the broker through `moldau.client` only. Records stay Arrow columns from the fetch to the
file or to Spark; no function of this package looks at one record at a time.
"""
