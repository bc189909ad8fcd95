"""One module for each API: its request and its response, as the one shape of all versions."""
