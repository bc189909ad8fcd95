"""What every API answers to a client that lacks rights, as data: recorded of Apache Kafka, compared with our answers.

    rows.py, rows_of_groups.py    the requests, by API, and the sets of rights that the client has
    playing.py      asks them of a broker: ours in process, or a live Kafka
    answers.py      what is compared of an answer, and how answers are kept
    recordings/     the answers, with the date and the command that made them
    accepted.py     where ours differ, and why

`python -m tests.security.table` shows the differences; with `--write` it asks a live Kafka and records its answers.
The client is known by its address: it comes from 127.0.0.2, and who makes ACLs from 127.0.0.1; nobody has logged in.
"""
