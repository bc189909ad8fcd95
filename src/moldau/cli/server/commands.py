"""`moldau server`: where its commands are. A start does not come by here: see `main.py`."""

from moldau.cli.command_line import Group

app = Group(
    "server",
    {
        "start": "moldau.cli.server.start:start",
        "format": "moldau.cli.server.format:format_server",
    },
)
