// Logs in over TLS, sends a record and reads it: kafkajs.mjs BOOTSTRAP MECHANISM USER PASSWORD CA
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Kafka, logLevel } = createRequire(`${process.env.NODE_PATH}/`)("kafkajs");
const [broker, mechanism, username, password, ca] = process.argv.slice(2);
const kafka = new Kafka({
  brokers: [broker],
  ssl: { ca: [readFileSync(ca)] },
  sasl: { mechanism: mechanism.toLowerCase(), username, password },
  logLevel: logLevel.NOTHING,
  retry: { retries: 2 },
});
try {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "logins", messages: [{ value: "hello" }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "kafkajs" });
  await consumer.connect();
  await consumer.subscribe({ topic: "logins", fromBeginning: true });
  await new Promise((seen) => consumer.run({ eachMessage: async () => seen() }));
  await consumer.disconnect();
  console.log("ok");
} catch (error) {
  console.log(error.name, error.message);
}
process.exit(0);
