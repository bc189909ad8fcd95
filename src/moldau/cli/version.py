"""What `moldau --version` prints."""


def version() -> str:
    """The version, and whether the columns are compiled, which makes them many times as fast as interpreted ones."""
    from moldau import __version__
    from moldau.records.columns import COMPILED

    return f"moldau {__version__} (columns {'compiled' if COMPILED else 'interpreted'})"
