"""Kafka agrees: its own dump tool reads every kind of file that we write, and we serve what it wrote, record for
record.

`dumping` asks `DumpLogSegments` of Apache Kafka, or what it printed of the same bytes before, and reads what it says;
any line that is not known is a complaint. `filling` fills our broker with all kinds of batches, and `standing` is that
broker, in virtual time or as a process. `apache` fills a Kafka and takes its folder, which `fixtures` packs.
"""
