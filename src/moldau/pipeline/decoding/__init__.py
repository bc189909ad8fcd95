"""From the values of records to columns of a table: JSON, Avro, text; pure over Arrow batches.

`TopicDecoder` is what a load uses; `choosing.py` makes one from the options of a command.
"""
