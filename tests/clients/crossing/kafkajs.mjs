// KafkaJS writes and reads messages exactly: `kafkajs.mjs write|read ADDRESS TOPIC COUNT CODEC`.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

const { Kafka, CompressionTypes, Partitioners, logLevel } = createRequire(process.env.NODE_PATH + '/')('kafkajs')
const [verb, address, topic, count, codec] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING })
const bytes = text => text === null ? null : Buffer.from(text, 'hex')
const hex = content => content === null || content === undefined ? null : content.toString('hex')

if (verb === 'write') {
  const messages = readFileSync(0, 'utf8').split('\n').filter(Boolean).map(line => {
    const [key, value, pairs, timestamp] = JSON.parse(line)
    const headers = {}
    for (const [name, content] of pairs) headers[name] = [...(headers[name] ?? []), bytes(content)]
    return { key: bytes(key), value: bytes(value), headers, timestamp: String(timestamp) }
  })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic, messages, compression: codec === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None })
  await producer.disconnect()
} else {
  const consumer = kafka.consumer({ groupId: `exact-${topic}`, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let left = Number(count)
  await new Promise(resolve => consumer.run({
    eachMessage: async ({ partition, message }) => {
      const pairs = Object.entries(message.headers)
        .flatMap(([name, content]) => (Array.isArray(content) ? content : [content]).map(one => [name, hex(one)]))
      const { key, value, timestamp, offset } = message
      console.log(JSON.stringify([hex(key), hex(value), pairs, Number(timestamp), partition, Number(offset)]))
      if (--left === 0) resolve()
    }
  }))
  await consumer.disconnect()
}
