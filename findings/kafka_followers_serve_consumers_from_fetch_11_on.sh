#!/usr/bin/env bash
# What: a Kafka follower answers a consumer's Fetch with records from version 11 on, although the consumer names no rack and
#   no broker has `replica.selector.class`. The same request in version 10 is answered NOT_LEADER_OR_FOLLOWER (6).
# Guess: only the leader serves consumers, unless the leader's selector sends those that name a rack to a follower (KIP-392).
# Seen: Apache Kafka 4.3.1, two brokers, a topic of two replicas, 2026-11-27: version 10 error 6, version 11 a batch.
# Source: met when a Python client's requests to a follower were refused by our broker and not by Kafka's.
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
ports=("$(free_port)" "$(free_port)")
run() { java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$folder/jars/*" "$@"; }
for node in 1 2; do
    cat >"$node.properties" <<SETTINGS
node.id=$node
process.roles=$([ "$node" = 1 ] && echo broker,controller || echo broker)
controller.quorum.voters=1@127.0.0.1:$quorum
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:${ports[$((node - 1))]}$([ "$node" = 1 ] && echo ",CONTROLLER://127.0.0.1:$quorum")
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$folder/data-$node
SETTINGS
    run kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$node.properties" >format.log 2>&1
    java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$folder/jars/*" kafka.Kafka "$node.properties" >"$node.log" 2>&1 &
    processes+=($!)
done
servers=127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}
until run org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --create --topic t --replica-assignment 1:2 \
    >topic.log 2>&1; do sleep 1; done
echo record | run org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$servers" --topic t \
    --producer-property acks=all >produce.log 2>&1
cat >fetch.py <<'PYTHON'
import socket
import struct
import sys
import time


def ask(port, version):
    """The error of the partition, and the bytes of records, of a consumer's Fetch of t-0 from offset 0."""
    text = lambda value: struct.pack(">h", len(value)) + value
    body = struct.pack(">iiiibii", -1, 500, 1, 1 << 20, 0, 0, -1)  # a consumer, in no session
    body += struct.pack(">i", 1) + text(b"t") + struct.pack(">i", 1)
    body += struct.pack(">iiqqi", 0, -1, 0, -1, 1 << 20) + struct.pack(">i", 0)
    body += text(b"") if version >= 11 else b""  # no rack
    frame = struct.pack(">hhi", 1, version, 1) + text(b"finding") + body
    with socket.create_connection(("127.0.0.1", port), 10) as broker, broker.makefile("rb") as replies:
        broker.sendall(struct.pack(">i", len(frame)) + frame)
        reply = replies.read(struct.unpack(">i", replies.read(4))[0])
    at = 4 + 4 + 2 + 4 + 4 + 2 + 1 + 4  # up to the only partition of the only topic
    index, error, _, _, _, aborted = struct.unpack_from(">ihqqqi", reply, at)
    at += 34 + 16 * max(aborted, 0) + (4 if version >= 11 else 0)
    return error, max(struct.unpack_from(">i", reply, at)[0], 0)


def asked(port, version):
    until = time.monotonic() + 30
    while True:  # the follower's high watermark comes with its next fetch
        error, size = ask(port, version)
        if error or size or time.monotonic() > until:
            return error, size


leader, follower = map(int, sys.argv[1:])
brokers = {"leader": leader, "follower": follower}
found = {(name, version): asked(port, version) for name, port in brokers.items() for version in (10, 11)}
for (name, version), (error, size) in found.items():
    print(f"{name}, version {version}: error {error}, {size} bytes of records")
assert found["follower", 10] == (6, 0), "a follower refuses version 10"
assert found["follower", 11][0] == 0 and found["follower", 11] == found["leader", 11] == found["leader", 10]
PYTHON
python3 fetch.py "${ports[@]}"
