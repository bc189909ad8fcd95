"""Tools for the files of a stopped broker, ours or Apache Kafka's: `moldau log`. A running broker imports none of this.

`inspection` reads any file and changes nothing. `foreign` lists the topics in another broker's log folders, `adoption`
copies their partitions into ours, and `registration` writes the topics into our metadata. `kafka_settings` and
`kafka_leftovers` read Kafka's metadata log (`metadata_log`). `repairing` makes damaged folders consistent again.
`legacy` reads message formats 0 and 1.
"""
