#!/usr/bin/env bash
# What: kafka-delete-records, for a topic that does not exist, asks its broker for Metadata without a pause for 60 s, more than
#   a thousand times a second, prints an error for the partition, and ends with exit code 0.
# Guess: a retry of Kafka's admin client waits retry.backoff.ms (100 ms, so at most 600 requests in 60 s), and a command that
#   has deleted nothing ends with another exit code than 0.
# Seen: Apache Kafka 4.3.1, one node (KRaft), 2026-11-29: 124,733 Metadata requests in 64 s, "timed out ... after 124732
#   attempt(s)", exit code 0.
# Source: met when the tools of Kafka were played against a broker whose requests were counted. The admin client's default
#   API time-out, 60 s, ends the attempts.
set -euo pipefail
folder=$(mktemp -d)
processes=()
trap 'for one in "${processes[@]}"; do kill -9 "$one" 2>/dev/null || true; done; wait 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder"
cat >pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.3.1</version></dependency>
</dependencies></project>
POM
mvn -q -B -Dstyle.color=never -Dmaven.repo.local="$folder/m2" dependency:copy-dependencies \
    -DoutputDirectory="$folder/jars"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
quorum=$(free_port)
port=$(free_port)
seen=$(free_port)
cat >server.properties <<SETTINGS
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@127.0.0.1:$quorum
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$quorum
advertised.listeners=PLAINTEXT://127.0.0.1:$seen
auto.create.topics.enable=false
log.dirs=$folder/data
SETTINGS
run() { java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$folder/jars/*" "$@"; }
run kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1
java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$folder/jars/*" kafka.Kafka server.properties >server.log 2>&1 &
processes+=($!)
cat >proxy.py <<'PYTHON'
"""Passes bytes on between clients and the broker, and writes how many requests each API had."""
import asyncio
import collections
import json
import os
import sys

counts = collections.Counter()


async def requests(reader, writer):
    while True:
        size = await reader.readexactly(4)
        frame = await reader.readexactly(int.from_bytes(size, "big"))
        counts[int.from_bytes(frame[:2], "big")] += 1
        writer.write(size + frame)
        await writer.drain()


async def replies(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def serve(reader, writer):
    try:
        broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
        await asyncio.wait(
            [asyncio.ensure_future(requests(reader, broker_writer)), asyncio.ensure_future(replies(broker_reader, writer))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        broker_writer.close()
    finally:
        writer.close()


async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[2])):
        while True:
            await asyncio.sleep(0.2)
            with open("counts.json.new", "w") as file:
                json.dump(counts, file)
            os.replace("counts.json.new", "counts.json")


asyncio.run(main())
PYTHON
python3 proxy.py "$port" "$seen" 2>proxy.log &
processes+=($!)
for _ in $(seq 60); do
    run org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$seen" --create --topic there >create.log 2>&1 && break
    sleep 1
done
metadata() { sleep 0.5; python3 -c 'import json; print(json.load(open("counts.json")).get("3", 0))'; }
echo '{"version": 1, "partitions": [{"topic": "missing", "partition": 0, "offset": 1}]}' >offsets.json
before=$(metadata)
began=$(date +%s)
code=0
run org.apache.kafka.tools.DeleteRecordsCommand --bootstrap-server "127.0.0.1:$seen" --offset-json-file offsets.json \
    >tool.log 2>&1 || code=$?
seconds=$(($(date +%s) - began))
asked=$(($(metadata) - before))
tail -n 2 tool.log
echo "$asked Metadata requests in $seconds s, exit code $code"
[ "$code" = 0 ] && [ "$asked" -gt 2000 ] && [ "$seconds" -ge 55 ]
