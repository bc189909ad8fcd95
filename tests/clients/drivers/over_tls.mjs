// Node's clients send records over mutual TLS and read them: `over_tls.mjs CLIENT BOOTSTRAP CA PEM`. Prints `ok`.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [name, bootstrap, authority, own] = process.argv.slice(2)
const found = createRequire(process.env.NODE_PATH + '/')
const tls = { ca: [readFileSync(authority)], key: readFileSync(own), cert: readFileSync(own) }
const values = Array.from({ length: 40 }, (_, number) => String(number).padStart(3, '0').repeat(30000))

async function kafkajs () {
  const { Kafka, logLevel } = found('kafkajs')
  const kafka = new Kafka({ brokers: [bootstrap], ssl: { ...tls, servername: 'localhost' }, logLevel: logLevel.ERROR })
  const producer = kafka.producer()
  await producer.connect()
  for (const value of values) await producer.send({ topic: 'secure', messages: [{ value, partition: 0 }], acks: -1 })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: name })
  await consumer.connect()
  await consumer.subscribe({ topics: ['secure'], fromBeginning: true })
  const read = []
  await new Promise(resolve => consumer.run({
    eachMessage: async ({ message }) => { if (read.push(message.value.toString()) === values.length) resolve() }
  }))
  await consumer.disconnect()
  return read
}

async function platformatic () {
  const { Consumer, Producer, stringDeserializers, stringSerializers } = await import(pathToFileURL(found.resolve('@platformatic/kafka')))
  const options = { clientId: name, bootstrapBrokers: [bootstrap], tls, autocreateTopics: true }
  const producer = new Producer({ ...options, serializers: stringSerializers })
  for (const value of values) await producer.send({ messages: [{ topic: 'secure', value, partition: 0 }], acks: -1 })
  await producer.close()
  const consumer = new Consumer({ ...options, groupId: name, deserializers: stringDeserializers })
  const stream = await consumer.consume({ topics: ['secure'], mode: 'earliest' })
  const read = []
  for await (const message of stream) if (read.push(message.value) === values.length) break
  await consumer.close(true)
  return read
}

const read = await { kafkajs, platformatic }[name]()
console.log(JSON.stringify(read) === JSON.stringify(values) ? 'ok' : `read ${read.length} other records`)
process.exit(0)
