"""What `moldau --version` prints."""


def version() -> str:
    """The version, and whether the columns are compiled, which makes them many times as fast as interpreted ones."""
    from moldau.records.columns import COMPILED
    from moldau.version import VERSION

    return f"moldau {VERSION} (columns {'compiled' if COMPILED else 'interpreted'})"
