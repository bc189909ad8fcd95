"""Patterns of property names. They come from strangers, so they are matched in linear time, by RE2."""

try:
    import re2
except ImportError:  # no wheel for this Python: then no pattern is known to match
    re2 = None


def matches(pattern: str, name: str) -> bool:
    """Whether the pattern is found in the name; False for one that RE2 does not know."""
    if re2 is None:
        return False
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.search(pattern, name, options) is not None
    except re2.error:
        return False
