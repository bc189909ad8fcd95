"""Elsewhere than on Linux nothing is forked: brokers of tests are started as users do."""

import sys

collect_ignore = [] if sys.platform == "linux" else ["test_forking.py"]
