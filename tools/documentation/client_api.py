"""The reference page of the client library, made from the signatures and docstrings of its public classes."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import moldau
from moldau.client.administration.configs import AsyncConfigs
from moldau.client.administration.transactions import AsyncTransactions
from moldau.client.consuming.partition_log import PartitionLog
from moldau.client.producing.transaction import Transaction

HEAD = """# Client library

The classes of the package `moldau`. The clients of `moldau.aio` have the same methods, to be awaited. Every argument
of a client's constructor is a [setting](client-settings.md). Guides with examples: [producer](../docs/producer.md),
[consumer](../docs/consumer.md), [tables](../docs/columns.md), [admin client](../docs/admin.md),
[schemas](../docs/schemas.md).
"""
CLASSES: dict[str, type[Any]] = {
    "Producer": moldau.Producer,
    "Transaction": Transaction,
    "Delivery": moldau.Delivery,
    "Delivered": moldau.Delivered,
    "TableDelivery": moldau.TableDelivery,
    "ProducerInterceptor": moldau.ProducerInterceptor,
    "Consumer": moldau.Consumer,
    "Record": moldau.Record,
    "PartitionLog": PartitionLog,
    "MessageStream": moldau.MessageStream,
    "TopicFilter": moldau.TopicFilter,
    "Admin": moldau.Admin,
    "Admin.configs": AsyncConfigs,
    "Admin.transactions": AsyncTransactions,
    "NewTopic": moldau.NewTopic,
}
"""By the name that users know. The two parts of the admin client are documented on their asyncio form."""
INTERNAL = frozenset({"put", "is_full"})
"""Methods of a stream that its consumer calls."""
WIDTH = 88
"""The longest line of a signature: what fits a page."""
MODULE = re.compile(r"\b(?:\w+\.)+(?=[A-Za-z])")
"""What stands before the name of a class in an annotation."""


def client_api_page() -> str:
    """Each class with its docstring, then its methods with signatures and docstrings."""
    parts = [HEAD]
    for name, kind in CLASSES.items():
        parts += [f"## {name}", _about(kind)]
        for method, member in _members(kind):
            parts += [f"### {name}.{method}", _signature(method, member), _about(_function(member))]
    parts += ["## read_table", _signature("moldau.read_table", moldau.read_table), _about(moldau.read_table)]
    return "\n\n".join(parts) + "\n"


def _about(described: Any) -> str:
    return prose(inspect.getdoc(described) or "")


def _members(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """The documented methods and properties, in the order in which the source has them."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("moldau")]
    seen = set()
    for base in bases:
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen or name in INTERNAL or not inspect.getdoc(_function(member)):
                continue
            seen.add(name)
            if callable(_function(member)) and not isinstance(member, type):
                yield name, member


def _function(member: Any) -> Any:
    """The function of a method, a class method, or a property."""
    for name in ("fget", "__func__", "func"):
        if hasattr(member, name):
            return getattr(member, name)
    return member


def _signature(name: str, member: Any) -> str:
    """As it is called, a line for each parameter if it is long; a property has only its name and type."""
    function: Callable[..., Any] = _function(member)
    given = inspect.signature(function)
    returns = "" if given.return_annotation is inspect.Signature.empty else f" -> {_type(given.return_annotation)}"
    if not inspect.isroutine(member) and function is not member and not isinstance(member, classmethod):
        return f"```python\n{name}{returns}\n```"
    parameters = [one for one in given.parameters.values() if one.name not in ("self", "cls")]
    words = list(_parameters(parameters))
    line = f"{name}({', '.join(words)}){returns}"
    if len(line) > WIDTH:
        line = "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){returns}"])
    return f"```python\n{line}\n```"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Each with its type and default, and the star before those that need a name."""
    starred = False
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            starred = True
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        text = str(one.replace(annotation=one.empty, default=one.empty))
        if one.annotation is not one.empty and len(kind := _type(one.annotation)) <= WIDTH - len(text) - 6:
            text += f": {kind}"  # a longer type hides more than it says
        if one.default is not one.empty:
            default = one.default if isinstance(one.default, str | int | float | tuple | None) else "..."
            text += " = " + ("..." if default == "..." else repr(default).replace("'", '"'))
        yield text


def _type(annotation: Any) -> str:
    """A type as the documents write it."""
    text = MODULE.sub("", inspect.formatannotation(annotation)).replace("~", "")
    text = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", text)
    return re.sub(r"Literal\[([^\]]+)\]", lambda found: _literal(found[1]), text)


def _literal(words: str) -> str:
    """The texts of a literal type, as they are written in a program."""
    return " | ".join(f'"{word.strip(chr(39))}"' for word in words.split(", "))


def prose(docstring: str) -> str:
    """A docstring as Markdown: its code and its examples stay, and nothing else is taken for HTML."""
    lines = []
    for line in docstring.splitlines():
        if not line.startswith("    "):
            pieces = line.split("`")
            pieces[::2] = [piece.replace("<", "&lt;").replace("*", r"\*") for piece in pieces[::2]]
            line = "`".join(pieces)
        lines.append(line)
    return "\n".join(lines)
