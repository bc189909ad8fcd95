"""`moldau log`: what is in the files of a broker that does not run."""

from moldau.cli.command_line import Group

app = Group(
    "log",
    {
        "dump": "moldau.cli.log.dump:dump",
        "verify": "moldau.cli.log.verify:verify",
        "repair": "moldau.cli.log.repair:repair",
        "adopt": "moldau.cli.log.adopt:adopt",
        "import": "moldau.cli.log.importing:import_files",
    },
)
