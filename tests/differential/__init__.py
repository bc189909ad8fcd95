"""Apache Kafka is the referee: one script of raw requests to our broker, whose replies are Kafka's, field by field.

`steps/` is the script, by area; `script` says how a step is written, `playing` plays it to one broker, `normalising`
takes out what may differ (each by a named rule), `recording` keeps what Kafka answered, `comparing` compares,
`accepted` lists the differences we stand by, `refereeing` asks a live Kafka. By hand: `python -m tests.differential
--help`.
"""
