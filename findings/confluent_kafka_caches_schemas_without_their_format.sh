#!/usr/bin/env bash
# What: confluent-kafka's registry client remembers a schema by its id, whatever `format` it was asked for in. Its
#   Protobuf deserializer asks for `format=serialized` (a descriptor in base64), gets the remembered `.proto` text, and
#   fails: "Wire format was corrupt", or for texts of other lengths "Incorrect padding". It is enough that the program
#   has looked at the schema before, with `get_schema(id, subject)`, or that the registry's answer to the serializer's
#   POST has the field `schema`.
# Guess: a text and a descriptor are remembered apart, as they are different answers of the registry, so a program may
#   look at a schema and then read its records.
# Seen: confluent-kafka 2.16.1, Python 3.11, Linux, 2026-11-28: the same bytes are read without, and not read with such
#   a look: SerializationError "Error parsing message with type 'google.protobuf.FileDescriptorProto'".
# Source: met with the answers of a registry of our own; confluent_kafka/schema_registry/_sync/schema_registry_client.py,
#   `get_schema` looks into its cache before it looks at `fmt`, and `register_schema_full_response` fills it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet 'confluent-kafka[protobuf,schemaregistry]==2.16.1'
cat >formats.py <<'PYTHON'
import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message_factory import GetMessageClass

TEXT = 'syntax = "proto3";\npackage cz;\n\nmessage River {\n  string name = 1;\n}\n'
FILE = descriptor_pb2.FileDescriptorProto(name="river.proto", package="cz", syntax="proto3")
FILE.message_type.add(name="River").field.add(name="name", number=1, type=9, label=1, json_name="name")
CODED = base64.b64encode(FILE.SerializeToString()).decode()
pool = descriptor_pool.DescriptorPool()
pool.Add(FILE)
River = GetMessageClass(pool.FindMessageTypeByName("cz.River"))
CONTEXT = SerializationContext("rivers", MessageField.VALUE)
answers_with_schema = False


class Registry(BaseHTTPRequestHandler):
    """One schema, id 1, as text or, if it is asked for, as a descriptor in base64."""

    def do_GET(self):
        if not self.path.startswith("/schemas/ids/1"):
            return self.answer(404, {"error_code": 40401, "message": "not found"})
        self.answer(200, {"schemaType": "PROTOBUF", "schema": CODED if "format=serialized" in self.path else TEXT})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, {"id": 1} | ({"schemaType": "PROTOBUF", "schema": TEXT} if answers_with_schema else {}))

    def answer(self, status, tree):
        body = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def read_back(look=False):
    """What a new client reads from its own bytes."""
    client = SchemaRegistryClient({"url": url})
    writer = SchemaRegistryClient({"url": url}) if look else client
    data = ProtobufSerializer(River, writer, {"use.deprecated.format": False})(River(name="Labe"), CONTEXT)
    if look:
        client.get_schema(1, "rivers-value")
    try:
        return ProtobufDeserializer(River, {"use.deprecated.format": False}, client)(data, CONTEXT).name
    except Exception as error:
        return f"{type(error).__module__}.{type(error).__name__}: {error}"


server = HTTPServer(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
plain = read_back()
looked_at = read_back(look=True)
answers_with_schema = True
answered = read_back()
server.shutdown()
server.server_close()
print("written and read:                                   ", plain)
print("the program has called get_schema(1, subject) before:", looked_at)
print("the answer to the registration has the field schema: ", answered)
sys.exit(plain != "Labe" or not all("Error parsing message" in one for one in (looked_at, answered)))
PYTHON
venv/bin/python formats.py
