"""`moldau verifiable`: a producer and a consumer that tell each thing they did as a line of JSON, for test harnesses.

The lines have the names and fields of Kafka's verifiable clients.
"""

from moldau.cli.command_line import Group

app = Group(
    "verifiable",
    {"produce": "moldau.cli.verifying.produce:produce", "consume": "moldau.cli.verifying.consume:consume"},
)
