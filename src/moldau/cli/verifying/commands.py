"""`moldau verifiable`: a producer and a consumer that tell each thing they did as a line of JSON, for test harnesses.

The lines have the names and fields of Kafka's verifiable clients.
"""

from moldau.cli.command_line import Group
from moldau.cli.verifying.consume import consume
from moldau.cli.verifying.produce import produce

app = Group("verifiable")
app.command()(produce)
app.command()(consume)
