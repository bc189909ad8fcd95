"""What every API answers to a client that lacks rights, as data: recorded of Apache Kafka, compared with our answers.

    rows.py, rows_of_groups.py, rows_of_logins.py    the requests, by API, and the sets of rights of the client
    playing.py      asks them of a broker: ours in process, or a live Kafka
    answers.py      what is compared of an answer, and how answers are kept
    recordings/     the answers, with the date and the command that made them
    accepted.py     where ours differ, and why

`python -m tests.security.table` shows the differences; with `--write` it asks a live Kafka and records its answers.
The client's rights are those of its address, 127.0.0.2; ACLs are made from 127.0.0.1. It comes to a listener without
logins, unless the case is about logins or delegation tokens.
"""
