"""Apache Kafka is the referee: one script of raw requests to it and to us, and replies equal field by field.

`steps/` is the script, by area; `script` says how a step is written, `playing` plays it to one broker, `normalising`
takes out what may differ (each by a named rule), `comparing` compares, `accepted` lists the differences we stand by.
By hand: `python -m tests.differential --help`.
"""
