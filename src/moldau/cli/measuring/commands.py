"""`moldau perf`: how fast records go in and out, with percentiles. For one client in Python: a broker can do more."""

from moldau.cli.command_line import Group
from moldau.cli.measuring.consume import consume
from moldau.cli.measuring.latency import latency
from moldau.cli.measuring.produce import produce

app = Group("perf")
app.command()(produce)
app.command()(consume)
app.command()(latency)
