"""`moldau perf`: how fast records go in and out, with percentiles. For one client in Python: a broker can do more."""

from moldau.cli.command_line import Group

app = Group(
    "perf",
    {
        "produce": "moldau.cli.measuring.produce:produce",
        "consume": "moldau.cli.measuring.consume:consume",
        "latency": "moldau.cli.measuring.latency:latency",
    },
)
