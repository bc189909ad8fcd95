"""An instance of the registry that notices the end of another one in half a second: `quick_instance.py ARGUMENTS of
moldau registry start`. Six seconds are right for users, and long for a test that kills one after the other."""

import sys

from moldau.cli.main import main
from moldau.registry import election

election.SESSION_MS, election.HEARTBEAT_MS, election.KNOWN_S = 500, 100, 0.05
sys.exit(main(["registry", "start", *sys.argv[1:]]))
