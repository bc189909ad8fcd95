// Logs in over TLS, sends a record and reads it: platformatic.mjs BOOTSTRAP MECHANISM USER PASSWORD CA
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const found = createRequire(`${process.env.NODE_PATH}/`).resolve("@platformatic/kafka");
const { Producer, Consumer, stringSerializers, stringDeserializers } = await import(pathToFileURL(found));
const [broker, mechanism, username, password, ca] = process.argv.slice(2);
const settings = {
  clientId: "platformatic",
  bootstrapBrokers: [broker],
  tls: { ca: [readFileSync(ca)] },
  sasl: { mechanism, username, password },
  retries: 2,
};
const codes = (error) => [error.name, error.code, error.message, ...(error.errors ?? []).map(codes), error.cause ? codes(error.cause) : ""].join(" ");
try {
  const producer = new Producer({ ...settings, serializers: stringSerializers });
  await producer.send({ messages: [{ topic: "logins", value: "hello" }] });
  await producer.close();
  const consumer = new Consumer({ ...settings, groupId: "platformatic", deserializers: stringDeserializers });
  const stream = await consumer.consume({ topics: ["logins"], mode: "earliest" });
  for await (const message of stream) {
    if (message.value === "hello") break;
  }
  console.log("ok");
} catch (error) {
  console.log(codes(error));
}
process.exit(0);
