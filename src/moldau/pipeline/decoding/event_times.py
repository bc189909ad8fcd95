"""Times in any of the forms that records have them in, as Arrow's timestamps (us, UTC); null where there is none.

Text is ISO 8601, UTC where it names no zone; a number counts seconds, ms, us or ns since 1970, which its size tells
apart: up to 10^11 seconds (the year 5138), then ms, us and ns, each by a factor of 1000. Parts of a us are cut.
"""

import datetime
import decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

TIMESTAMP: Final = pa.timestamp("us", "UTC")
SECONDS_MAX: Final = 10**11
US_MIN: Final = -62_135_596_800_000_000
US_MAX: Final = 253_402_300_799_999_999
"""The years 1 to 9999, which every reader has."""
ADJUSTED_MAX: Final = 21
"""No time in ns has more digits."""
EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def as_times(column: Any) -> Any:
    """The times in a column of timestamps, dates, numbers or text. Raises `TypeError` for another column."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _calendar(column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()))
    if pa.types.is_integer(kind):
        return _calendar(_from_integers(column.cast(pa.int64())))
    if pa.types.is_floating(kind) or pa.types.is_string(kind) or pa.types.is_null(kind):
        if pa.types.is_string(kind):
            whole = _from_text(column)
            if whole is not None:
                return _calendar(whole.cast(pa.timestamp("us")).cast(pa.int64()))
        return pa.array([us_of(one) for one in column.to_pylist()], pa.int64()).cast(TIMESTAMP)
    raise TypeError(f"is {kind}, which is neither a time nor a number nor text")


def us_of(value: Any) -> int | None:
    """The time that text or a number says, in us since 1970; None if it says none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, str):
            text = value.strip()
            if text.lstrip("-").replace(".", "", 1).isdigit() and not (len(text) == 8 and text.isdigit()):
                return us_of(decimal.Decimal(text))
            time = datetime.datetime.fromisoformat(text)
            time = time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
            us = (time - _EPOCH) // datetime.timedelta(microseconds=1)
        else:
            if isinstance(value, decimal.Decimal):
                return _of_exact(value)
            size, factor = abs(value), 1_000_000
            while size >= SECONDS_MAX and factor > 1:
                size, factor = size / 1000, factor // 1000
            us = int(value // 1000) if size >= SECONDS_MAX else int(value * factor)
    except (ValueError, OverflowError, TypeError):
        return None
    return us if US_MIN <= us <= US_MAX else None


def _of_exact(value: decimal.Decimal) -> int | None:
    """As `us_of`, of a number of any length and size; what is smaller than a us is cut, downwards as in text."""
    size, moved = abs(value), 6
    while moved > -3 and size >= SECONDS_MAX * 10 ** (6 - moved):
        moved -= 3
    if not value.is_finite() or (value and value.adjusted() > ADJUSTED_MAX):
        return None
    us = int(value.scaleb(moved, EXACT).to_integral_value(decimal.ROUND_FLOOR, EXACT))
    return us if US_MIN <= us <= US_MAX else None


def _from_integers(column: Any) -> Any:
    """us since 1970; of the largest numbers, which are ns, a thousandth."""
    edges = pc.min_max(column)
    least, greatest = edges["min"].as_py(), edges["max"].as_py()
    if least is None:
        return column
    if least >= 0 and greatest < SECONDS_MAX:
        return pc.multiply(column, 1_000_000)
    if least >= SECONDS_MAX and greatest < SECONDS_MAX * 1000:
        return pc.multiply(column, 1000)
    return pa.array([us_of(one) for one in column.to_pylist()], pa.int64())


def _from_text(column: Any) -> Any:
    """The times if all have a zone, or none has; None otherwise."""
    for kind in (TIMESTAMP, pa.timestamp("us")):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _calendar(column: Any) -> Any:
    """Numbers of us as times; null outside of the calendar."""
    edges = pc.min_max(column)
    if edges["min"].as_py() is None or (edges["min"].as_py() >= US_MIN and edges["max"].as_py() <= US_MAX):
        return column.cast(TIMESTAMP)
    inside = pc.and_(pc.greater_equal(column, US_MIN), pc.less_equal(column, US_MAX))
    return pc.if_else(inside, column, pa.scalar(None, pa.int64())).cast(TIMESTAMP)
