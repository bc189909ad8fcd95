"""`Sorting`: the order of a list, by a column that the query names. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from moldau.console.web.requests import PageRequest

DOWN = "-"
T = TypeVar("T")


class Sorting(NamedTuple):
    """A column, and its direction. `first` has the direction that a click on another column's head begins with: `-`
    begins with the largest."""

    column: str
    is_down: bool
    first: Mapping[str, str]

    @property
    def query(self) -> str:
        """The end of a query that asks for this order; "" for the usual one."""
        usual = next(iter(self.first))
        is_usual = self.column == usual and self.is_down == bool(self.first[usual])
        return "" if is_usual else f"&sort={DOWN if self.is_down else ''}{self.column}"

    @property
    def direction(self) -> str:
        """As `aria-sort` has it."""
        return "descending" if self.is_down else "ascending"

    def clicked(self, column: str) -> str:
        """What a click on the head of this column asks for: the other direction, if the list has its order."""
        if column != self.column:
            return self.first[column] + column
        return column if self.is_down else DOWN + column

    def of(self, rows: Iterable[T], value: Callable[[T], Any]) -> list[T]:
        """The rows in this order; those whose value is None come last."""
        given = [*rows]
        known = sorted((row for row in given if value(row) is not None), key=value, reverse=self.is_down)
        return known + [row for row in given if value(row) is None]


def sorting(request: PageRequest, first: Mapping[str, str]) -> Sorting:
    """The order that the request asks for by `sort`; that of the first column by default."""
    text = request.text("sort")
    column = text.removeprefix(DOWN)
    if column not in first:
        column = next(iter(first))
        return Sorting(column, bool(first[column]), first)
    return Sorting(column, text.startswith(DOWN), first)
