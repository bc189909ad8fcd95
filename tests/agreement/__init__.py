"""Kafka agrees: its own dump tool reads every kind of file that we write, and we serve what it wrote, record for
record.

`dumping` runs `DumpLogSegments` of Apache Kafka in one JVM and reads what it says; `filling` fills our broker with all
kinds of batches; `apache` fills a Kafka and takes its folder. Any line of the tool that is not known is a complaint.
"""
