"""Unmodified clients of other projects against a broker process, over TCP.

`scenarios.py` says what every client must be able to do; each test file names clients and gets the scenarios;
`drivers/` holds one small program per client library, which does what lines of JSON tell it (`client.py` is their other
end), `restarts/` one per client library that produces and consumes by itself until it is told to end.
"""
