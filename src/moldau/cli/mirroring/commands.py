"""`moldau mirror`: topics of one cluster, copied into another one at the same offsets."""

from moldau.cli.command_line import Group

app = Group(
    "mirror",
    {
        "start": "moldau.cli.mirroring.start:start",
        "status": "moldau.cli.mirroring.status:show_status",
        "failover": "moldau.cli.mirroring.taking_over:fail_over_now",
        "promote": "moldau.cli.mirroring.taking_over:promote_mirrors",
    },
)
