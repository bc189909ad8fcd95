"""The web console: pages about a cluster, made on the server, for any Kafka compatible cluster. It is a client of it.

`web` has what every page needs (requests, answers, guards, sessions, templates), `asking` what pages ask the cluster,
`pages` a module for each subject, `routes` which path is which page, `app` the way of a request, `server` the process.
"""
