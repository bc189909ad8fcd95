"""`moldau dead-letters`: list, show, replay."""

import sys
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.consuming.formats import json_text
from moldau.cli.dead_letters.letters import DeadLetter, WantedLetters
from moldau.cli.dead_letters.reading import all_letters
from moldau.cli.options import BOOTSTRAP, BootstrapServer, CommandProperty, Json, client_settings, reachable
from moldau.cli.output import named_content, note, print_json, print_table, time_text
from moldau.client.consuming.fetched.record import Record
from moldau.names import counted

MESSAGE_MAX = 60
app = Group("dead-letters")

DeadLetterTopic = Annotated[str, Argument("TOPIC", help="The topic that failed records were sent to.")]
FromTopic = Annotated[str, Option("--from", metavar="TOPIC", help="Only records that failed in this topic.")]
ExceptionText = Annotated[
    str, Option("--exception", metavar="TEXT", help="Only records whose exception or message has this text.")
]


@app.command("list")
def list_letters(
    topics: Annotated[list[str], Argument("TOPIC...", help="Topics that failed records were sent to.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> None:
    """
    Count the dead letters of topics by the topic in which they failed and by exception; the message is that of the
    newest one. All records of the topics are read.

    The command reads the headers of `Consumer.process(dead_letter=...)`, of Kafka Streams, Kafka Connect and Spring.
    Records that a load into tables rejected are shown by `moldau pipeline rejected`.

    Examples:

      moldau dead-letters list orders.dlq
    """
    settings = client_settings(bootstrap_server, command_property, {})
    reachable(bootstrap_server)
    rows = [row for topic in topics for row in _counted(topic, bootstrap_server, settings)]
    if as_json:
        print_json(rows)
    else:
        shown = [[*row.values()][:-1] + [_short(row["message"])] for row in rows]
        print_table(["TOPIC", "FROM", "EXCEPTION", "RECORDS", "FIRST", "LAST", "MESSAGE"], shown)


def _counted(topic: str, brokers: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    found: dict[tuple[str | None, str], list[Any]] = {}
    for record, letter in all_letters(topic, brokers, settings):
        row = found.setdefault((letter.topic, letter.exception), [0, record.timestamp_ms, record.timestamp_ms, ""])
        row[0] += 1
        row[1] = min(row[1], record.timestamp_ms)
        if record.timestamp_ms >= row[2]:
            row[2:] = [record.timestamp_ms, letter.message]
    return [
        {
            "topic": topic,
            "from": origin,
            "exception": exception,
            "records": records,
            "first": time_text(first_ms),
            "last": time_text(last_ms),
            "message": message,
        }
        for (origin, exception), (records, first_ms, last_ms, message) in sorted(
            found.items(), key=lambda one: (-one[1][0], one[0][0] or "", one[0][1])
        )
    ]


@app.command()
def show(
    topic: DeadLetterTopic,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    from_topic: FromTopic = "",
    exception: ExceptionText = "",
    last: Annotated[int | None, Option(min=1, metavar="N", help="Only the last N records of each partition.")] = None,
    max_messages: Annotated[int | None, Option("--max-messages", "-n", min=1, help="Stop after this number.")] = None,
    stacktrace: Annotated[bool, Option("--stacktrace", help="Print the stack traces, too.")] = False,
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> None:
    """
    Print the dead letters of a topic: where each failed and why, its key and its value. With --json each is a line.

    Examples:

      moldau dead-letters show orders.dlq --last 10

      moldau dead-letters show orders.dlq --exception ValueError --json
    """
    settings = client_settings(bootstrap_server, command_property, {})
    reachable(bootstrap_server)
    wanted, printed = WantedLetters(from_topic, exception), 0
    for record, letter in all_letters(topic, bootstrap_server, settings, last):
        if wanted.takes(letter):
            line = json_text(_as_json_object(record, letter)) if as_json else _text(record, letter, stacktrace)
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
            printed += 1
            if printed == max_messages:
                break
    if not printed:
        note(f"no such dead letter in {topic}")


@app.command()
def replay(
    topic: DeadLetterTopic,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    from_topic: FromTopic = "",
    exception: ExceptionText = "",
    to: Annotated[str, Option("--to", metavar="TOPIC", help="Send all to this topic, not where they failed.")] = "",
    group: Annotated[
        str, Option(metavar="NAME", help="The group that remembers what was replayed; moldau-replay-TOPIC by default.")
    ] = "",
    max_messages: Annotated[int | None, Option("--max-messages", "-n", min=1, help="Replay at most this many.")] = None,
    execute: Annotated[bool, Option("--execute", help="Carry it out; otherwise it is only counted.")] = False,
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> None:
    """
    Send dead letters back to the topic and partition in which they failed, unchanged, each exactly once.

    A group holds the position: the next run continues there, even if this one is killed. Records that --from or
    --exception leave out are passed over and count as done for that group: to replay them later, name another --group.
    The command ends at the present end of the topic, so a run sends a record that fails again only once.

    Examples:

      moldau dead-letters replay orders.dlq

      moldau dead-letters replay orders.dlq --exception Timeout --group retry-timeouts --execute
    """
    from moldau.cli.dead_letters.replaying import LetterReplay

    settings = client_settings(bootstrap_server, command_property, {})
    reachable(bootstrap_server)
    name = group or f"moldau-replay-{topic}"
    run = LetterReplay(topic, bootstrap_server, settings, name, WantedLetters(from_topic, exception), to)
    run.run(max_messages, execute=execute)
    if as_json:
        print_json({"group": name, "executed": execute, "replayed": run.counts, "passed_over": run.passed})
    else:
        for to_topic, records in run.counts.items():
            print(f"{to_topic}: {counted(records, 'record')} {'sent' if execute else 'would be sent'}")
        if run.passed:
            print(f"passed over: {counted(run.passed, 'record')}")
    if not run.counts:
        note(f"nothing to replay behind the position of group {name}")
    elif not execute:
        note("nothing was sent: add --execute to carry it out")


def _as_json_object(record: Record, letter: DeadLetter) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": time_text(record.timestamp_ms),
        "timestamp_ms": record.timestamp_ms,
        "from": {"topic": letter.topic, "partition": letter.partition, "offset": letter.offset},
        "exception": letter.exception,
        "message": letter.message,
        "stacktrace": letter.stacktrace,
        **dict([named_content("key", record.key), named_content("value", record.value)]),
        "headers": [{"name": name, **dict([named_content("value", value)])} for name, value in letter.own],
    }


def _text(record: Record, letter: DeadLetter, stacktrace: bool) -> bytes:
    place = f"{record.topic_partition}@{record.offset}"
    lines = [f"{place}  from {letter.place}  {time_text(record.timestamp_ms)}"]
    lines.append(f"  {letter.exception or 'no exception is named'}: {letter.message}")
    if stacktrace:
        lines += [f"  {line}" for line in letter.stacktrace.splitlines()]
    texts = [line.encode(errors="replace") for line in lines]
    for name, content in (("key", record.key), ("value", record.value)):
        texts.append(b"  %-5b  %b" % (name.encode(), b"null" if content is None else content))
    return b"\n".join(texts)


def _short(message: str) -> str:
    first = message.partition("\n")[0]
    return first if len(first) <= MESSAGE_MAX else f"{first[: MESSAGE_MAX - 3]}..."
