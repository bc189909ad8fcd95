"""`moldau cluster`: where its commands are."""

from moldau.cli.command_line import Group

app = Group(
    "cluster",
    {
        "status": "moldau.cli.cluster.showing:status",
        "start": "moldau.cli.cluster.starting:start",
        "adopt": "moldau.cli.cluster.adopt:adopt",
        "elect-leaders": "moldau.cli.cluster.elect_leaders:elect_leaders",
        "reassign": "moldau.cli.cluster.moving.commands:reassign",
        "drain-broker": "moldau.cli.cluster.moving.commands:drain_broker",
        "replace-broker": "moldau.cli.cluster.moving.commands:replace_broker",
        "add-broker": "moldau.cli.cluster.moving.commands:add_broker",
        "balance": "moldau.cli.cluster.moving.commands:balance",
        "log-dirs": "moldau.cli.cluster.moving.log_dirs:log_dirs",
        "unregister": "moldau.cli.cluster.unregister:unregister",
        "api-versions": "moldau.cli.cluster.api_versions:api_versions",
        "features": "moldau.cli.cluster.api_versions:features",
    },
)
